package redact

import "strings"

// need is what the body of a vendor's token must show, besides its length.
type need uint8

const (
	anyBody   need = iota
	oneDigit       // a digit at least
	mixedCase      // a digit, a capital and a small letter
)

// vendor describes the tokens of one issuer: a prefix that no word of a language has, then a body.
type vendor struct {
	prefix string // compared exactly
	kind   string
	body   *charset
	min    int  // least length of the body
	max    int  // if not 0: the body has at most this length, and what follows is no letter or digit
	need   need // a property of the body
	bound  bool // the prefix is short: it must begin a word
	back   int  // this many bytes before the prefix belong to the token
	backOf *charset
}

// vendors is the table of issuers. Lengths are below the official ones where the prefix is unmistakable,
// so that a token cut short by a line limit still goes.
var vendors = []vendor{
	{prefix: "AKIA", kind: "aws_key_id", body: charsUpper, min: 16, max: 16, bound: true},
	{prefix: "ASIA", kind: "aws_key_id", body: charsUpper, min: 16, max: 16, bound: true},
	{prefix: "ABIA", kind: "aws_key_id", body: charsUpper, min: 16, max: 16, bound: true},
	{prefix: "ACCA", kind: "aws_key_id", body: charsUpper, min: 16, max: 16, bound: true},
	{prefix: "ABSK", kind: "aws", body: charsBase64, min: 60, need: mixedCase, bound: true},
	{prefix: "bedrock-api-key-", kind: "aws", body: charsBase64, min: 20},
	{prefix: "IQoJb3JpZ2lu", kind: "aws_session", body: charsPercent, min: 30},
	{prefix: "FwoGZXIvYXdz", kind: "aws_session", body: charsPercent, min: 30},
	{prefix: "FQoGZXIvYXdz", kind: "aws_session", body: charsPercent, min: 30},
	{prefix: "amzn.mws.", kind: "aws", body: charsDash, min: 20},
	{prefix: "amzn1.oa2-cs.v1.", kind: "aws", body: charsAlnum, min: 20},
	{prefix: "Atza|", kind: "aws", body: charsBase64, min: 20, bound: true},
	{prefix: "Atzr|", kind: "aws", body: charsBase64, min: 20, bound: true},

	{prefix: "ghp_", kind: "github", body: charsAlnum, min: 20},
	{prefix: "gho_", kind: "github", body: charsAlnum, min: 20},
	{prefix: "ghu_", kind: "github", body: charsAlnum, min: 20},
	{prefix: "ghs_", kind: "github", body: charsDot, min: 20, need: oneDigit},
	{prefix: "ghr_", kind: "github", body: charsAlnum, min: 20},
	{prefix: "github_pat_", kind: "github", body: charsWord, min: 20},
	{prefix: "glpat-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "gldt-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "glrt-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "glrtr-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "glft-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "glcbt-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "glptt-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "glimt-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "glagent-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "gloas-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "glsoat-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "glffct-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "glwt-", kind: "gitlab", body: charsDot, min: 14, need: oneDigit},
	{prefix: "GR1348941", kind: "gitlab", body: charsDash, min: 14},
	{prefix: "ATBB", kind: "bitbucket", body: charsAlnum, min: 24, need: mixedCase, bound: true},
	{prefix: "BBDC-", kind: "bitbucket", body: charsBase64, min: 30, bound: true},
	{prefix: "ATATT3", kind: "atlassian", body: charsBase64, min: 20, bound: true},
	{prefix: "ATCTT3", kind: "atlassian", body: charsBase64, min: 20, bound: true},
	{prefix: "ATSTT3", kind: "atlassian", body: charsBase64, min: 20, bound: true},
	{prefix: "ATTA", kind: "trello", body: charsAlnum, min: 50, need: oneDigit, bound: true},

	{prefix: "xoxb-", kind: "slack", body: charsPercent, min: 10, need: oneDigit},
	{prefix: "xoxp-", kind: "slack", body: charsPercent, min: 10, need: oneDigit},
	{prefix: "xoxa-", kind: "slack", body: charsPercent, min: 10, need: oneDigit},
	{prefix: "xoxr-", kind: "slack", body: charsPercent, min: 10, need: oneDigit},
	{prefix: "xoxs-", kind: "slack", body: charsPercent, min: 10, need: oneDigit},
	{prefix: "xoxc-", kind: "slack", body: charsPercent, min: 10, need: oneDigit},
	{prefix: "xoxd-", kind: "slack", body: charsPercent, min: 10, need: oneDigit},
	{prefix: "xoxo-", kind: "slack", body: charsPercent, min: 10, need: oneDigit},
	{prefix: "xoxe-", kind: "slack", body: charsPercent, min: 10, need: oneDigit},
	{prefix: "xoxe.", kind: "slack", body: charsPercent, min: 10, need: oneDigit},
	{prefix: "xapp-", kind: "slack", body: charsDash, min: 10, need: oneDigit},
	{prefix: "xwfp-", kind: "slack", body: charsDash, min: 10, need: oneDigit},

	{prefix: "sk_live_", kind: "stripe", body: charsWord, min: 10},
	{prefix: "sk_test_", kind: "stripe", body: charsWord, min: 10, need: oneDigit},
	{prefix: "sk_org_", kind: "stripe", body: charsWord, min: 16, need: oneDigit},
	{prefix: "rk_live_", kind: "stripe", body: charsWord, min: 10},
	{prefix: "rk_test_", kind: "stripe", body: charsWord, min: 10, need: oneDigit},
	{prefix: "whsec_", kind: "stripe", body: charsBase64, min: 16, need: oneDigit},
	{prefix: "sq0atp-", kind: "square", body: charsDash, min: 16},
	{prefix: "sq0csp-", kind: "square", body: charsDash, min: 16},
	{prefix: "EAA", kind: "access_token", body: charsDash, min: 40, need: mixedCase, bound: true},
	{prefix: "IGQV", kind: "access_token", body: charsDash, min: 40, need: mixedCase, bound: true},
	{prefix: "access_token$production$", kind: "braintree", body: charsPath, min: 20},
	{prefix: "access_token$sandbox$", kind: "braintree", body: charsPath, min: 20},
	{prefix: "A21AA", kind: "paypal", body: charsDash, min: 40, need: mixedCase, bound: true},
	{prefix: "FLWSECK", kind: "flutterwave", body: charsDash, min: 20},
	{prefix: "EZAK", kind: "easypost", body: charsAlnum, min: 40, need: mixedCase, bound: true},
	{prefix: "EZTK", kind: "easypost", body: charsAlnum, min: 40, need: mixedCase, bound: true},
	{prefix: "shippo_live_", kind: "shippo", body: charsAlnum, min: 16},
	{prefix: "shippo_test_", kind: "shippo", body: charsAlnum, min: 16},
	{prefix: "duffel_live_", kind: "duffel", body: charsBase64, min: 16},
	{prefix: "duffel_test_", kind: "duffel", body: charsBase64, min: 16},
	{prefix: "access-production-", kind: "plaid", body: charsDash, min: 20, need: oneDigit},
	{prefix: "access-sandbox-", kind: "plaid", body: charsDash, min: 20, need: oneDigit},
	{prefix: "access-development-", kind: "plaid", body: charsDash, min: 20, need: oneDigit},

	{prefix: "sk-ant-", kind: "anthropic", body: charsDash, min: 12, need: oneDigit},
	{prefix: "sk-proj-", kind: "openai", body: charsDash, min: 16, need: oneDigit},
	{prefix: "sk-svcacct-", kind: "openai", body: charsDash, min: 16, need: oneDigit},
	{prefix: "sk-admin-", kind: "openai", body: charsDash, min: 16, need: oneDigit},
	{prefix: "sk-or-v1-", kind: "openrouter", body: charsDash, min: 16, need: oneDigit},
	{prefix: "sk-", kind: "api_key", body: charsDash, min: 20, need: oneDigit, bound: true},
	{prefix: "sess-", kind: "openai", body: charsAlnum, min: 40, need: mixedCase, bound: true},
	{prefix: "gsk_", kind: "groq", body: charsAlnum, min: 20, bound: true},
	{prefix: "r8_", kind: "replicate", body: charsAlnum, min: 20, bound: true},
	{prefix: "pplx-", kind: "perplexity", body: charsAlnum, min: 20, bound: true},
	{prefix: "xai-", kind: "xai", body: charsDash, min: 30, need: oneDigit, bound: true},
	{prefix: "hf_", kind: "huggingface", body: charsAlnum, min: 20, bound: true},
	{prefix: "api_org_", kind: "huggingface", body: charsAlnum, min: 20, bound: true},
	{prefix: "fw_", kind: "fireworks", body: charsAlnum, min: 22, need: oneDigit, bound: true},
	{prefix: "tgp_v1_", kind: "together", body: charsDash, min: 20},
	{prefix: "tvly-", kind: "tavily", body: charsDash, min: 20, need: oneDigit, bound: true},
	{prefix: "fc-", kind: "firecrawl", body: charsAlnum, min: 32, need: oneDigit, bound: true},
	{prefix: "csk-", kind: "cerebras", body: charsAlnum, min: 30, bound: true},
	{prefix: "nvapi-", kind: "nvidia", body: charsDash, min: 20, need: oneDigit},
	{prefix: "lsv2_", kind: "langsmith", body: charsWord, min: 20},
	{prefix: "pcsk_", kind: "pinecone", body: charsWord, min: 20, need: oneDigit},
	{prefix: "wandb_v1_", kind: "wandb", body: charsWord, min: 20},

	{prefix: "AIza", kind: "google", body: charsDash, min: 25, need: oneDigit},
	{prefix: "GOCSPX-", kind: "google", body: charsDash, min: 16},
	{prefix: "ya29.", kind: "google", body: charsDot, min: 20, bound: true},
	{prefix: "1//0", kind: "google", body: charsDash, min: 20, bound: true},
	{prefix: "4/0A", kind: "google", body: charsDash, min: 24, bound: true},
	{prefix: "1.AQ", kind: "azure", body: charsDot, min: 60, need: mixedCase, bound: true},
	{prefix: "0.AQ", kind: "azure", body: charsDot, min: 60, need: mixedCase, bound: true},
	{prefix: "7Q~", kind: "azure", body: charsTilde, min: 24, back: 3, backOf: charsTilde},
	{prefix: "8Q~", kind: "azure", body: charsTilde, min: 24, back: 3, backOf: charsTilde},
	{prefix: "9Q~", kind: "azure", body: charsTilde, min: 24, back: 3, backOf: charsTilde},
	{prefix: "LTAI", kind: "alibaba", body: charsAlnum, min: 16, need: oneDigit, bound: true},
	{prefix: "AKID", kind: "tencent", body: charsAlnum, min: 30, need: oneDigit, bound: true},
	{prefix: "AQVN", kind: "yandex", body: charsDash, min: 34, need: oneDigit, bound: true},
	{prefix: "y0_", kind: "yandex", body: charsDash, min: 40, need: oneDigit, bound: true},
	{prefix: "t1.", kind: "yandex", body: charsBase64, min: 60, need: mixedCase, bound: true},
	{prefix: "SCW", kind: "scaleway", body: charsUpper, min: 17, max: 17, need: oneDigit, bound: true},

	{prefix: "dop_v1_", kind: "digitalocean", body: charsAlnum, min: 20},
	{prefix: "doo_v1_", kind: "digitalocean", body: charsAlnum, min: 20},
	{prefix: "dor_v1_", kind: "digitalocean", body: charsAlnum, min: 20},
	{prefix: "HRKU-", kind: "heroku", body: charsDash, min: 20},
	{prefix: "fo1_", kind: "fly", body: charsDash, min: 20, bound: true},
	{prefix: "fm1r_", kind: "fly", body: charsBase64, min: 20},
	{prefix: "fm2_", kind: "fly", body: charsBase64, min: 20, bound: true},
	{prefix: "sbp_", kind: "supabase", body: charsAlnum, min: 20, bound: true},
	{prefix: "sb_secret_", kind: "supabase", body: charsDash, min: 16},
	{prefix: "vcp_", kind: "vercel", body: charsAlnum, min: 24, need: oneDigit, bound: true},
	{prefix: "vck_", kind: "vercel", body: charsAlnum, min: 24, need: oneDigit, bound: true},
	{prefix: "nfp_", kind: "netlify", body: charsAlnum, min: 20, bound: true},
	{prefix: "nfc_", kind: "netlify", body: charsAlnum, min: 20, bound: true},
	{prefix: "nfo_", kind: "netlify", body: charsAlnum, min: 20, bound: true},
	{prefix: "nfu_", kind: "netlify", body: charsAlnum, min: 20, bound: true},
	{prefix: "v1.0-", kind: "cloudflare", body: charsDash, min: 60, need: oneDigit, bound: true},
	{prefix: "cfut_", kind: "cloudflare", body: charsDash, min: 30, bound: true},
	{prefix: "cfat_", kind: "cloudflare", body: charsDash, min: 30, bound: true},
	{prefix: "rnd_", kind: "render", body: charsAlnum, min: 24, need: oneDigit, bound: true},
	{prefix: "napi_", kind: "neon", body: charsAlnum, min: 30, bound: true},
	{prefix: "pscale_tkn_", kind: "planetscale", body: charsDot, min: 16},
	{prefix: "pscale_pw_", kind: "planetscale", body: charsDot, min: 16},
	{prefix: "pscale_oauth_", kind: "planetscale", body: charsDot, min: 16},
	{prefix: "tskey-", kind: "tailscale", body: charsDash, min: 16, need: oneDigit},
	{prefix: ".atlasv1.", kind: "terraform", body: charsBase64, min: 30, back: 14, backOf: charsAlnum},
	{prefix: "pul-", kind: "pulumi", body: charsAlnum, min: 30, need: oneDigit, bound: true},
	{prefix: "hvs.", kind: "vault", body: charsDash, min: 16, bound: true},
	{prefix: "hvb.", kind: "vault", body: charsDash, min: 16, bound: true},
	{prefix: "hvr.", kind: "vault", body: charsDash, min: 16, bound: true},
	{prefix: "s.", kind: "vault", body: charsAlnum, min: 24, max: 24, need: mixedCase, bound: true},
	{prefix: "b.AAAAA", kind: "vault", body: charsDash, min: 30, bound: true},
	{prefix: "dp.pt.", kind: "doppler", body: charsAlnum, min: 20, bound: true},
	{prefix: "dp.st.", kind: "doppler", body: charsDot, min: 20, need: oneDigit, bound: true},
	{prefix: "dp.ct.", kind: "doppler", body: charsAlnum, min: 20, bound: true},
	{prefix: "dp.sa.", kind: "doppler", body: charsAlnum, min: 20, bound: true},
	{prefix: "dp.scim.", kind: "doppler", body: charsAlnum, min: 20, bound: true},
	{prefix: "dp.audit.", kind: "doppler", body: charsAlnum, min: 20, bound: true},
	{prefix: "ops_eyJ", kind: "onepassword", body: charsBase64, min: 20},
	{prefix: "A3-", kind: "onepassword", body: charsDash, min: 30, need: oneDigit, bound: true},
	{prefix: "dapi", kind: "databricks", body: charsDash, min: 28, need: oneDigit, bound: true},
	{prefix: "dose", kind: "databricks", body: charsAlnum, min: 32, max: 32, need: oneDigit, bound: true},
	{prefix: "sha256~", kind: "openshift", body: charsDash, min: 30, bound: true},

	{prefix: "npm_", kind: "npm", body: charsAlnum, min: 20, need: oneDigit, bound: true},
	{prefix: "pypi-", kind: "pypi", body: charsDash, min: 30, need: mixedCase, bound: true},
	{prefix: "rubygems_", kind: "rubygems", body: charsAlnum, min: 20, need: oneDigit},
	{prefix: "cio", kind: "crates", body: charsAlnum, min: 32, max: 32, need: mixedCase, bound: true},
	{prefix: "CLOJARS_", kind: "clojars", body: charsAlnum, min: 20, need: oneDigit},
	{prefix: "oy2", kind: "nuget", body: charsAlnum, min: 40, max: 44, need: oneDigit, bound: true},
	{prefix: "dckr_pat_", kind: "docker", body: charsDash, min: 16},
	{prefix: "dckr_oat_", kind: "docker", body: charsDash, min: 16},
	{prefix: "AKCp", kind: "artifactory", body: charsAlnum, min: 40, bound: true},
	{prefix: "cmVmdGtuOj", kind: "artifactory", body: charsAlnum, min: 30, bound: true},
	{prefix: "bkua_", kind: "buildkite", body: charsAlnum, min: 20},
	{prefix: "CCIPAT_", kind: "circleci", body: charsWord, min: 20},
	{prefix: "CCIPRJ_", kind: "circleci", body: charsWord, min: 20},
	{prefix: "sgp_", kind: "sourcegraph", body: charsWord, min: 30, bound: true},
	{prefix: "squ_", kind: "sonarqube", body: charsAlnum, min: 20, bound: true},
	{prefix: "sqp_", kind: "sonarqube", body: charsAlnum, min: 20, bound: true},
	{prefix: "sqa_", kind: "sonarqube", body: charsAlnum, min: 20, bound: true},
	{prefix: "snyk_uat.", kind: "snyk", body: charsDot, min: 20},
	{prefix: "pnu_", kind: "prefect", body: charsAlnum, min: 24, bound: true},
	{prefix: "pnb_", kind: "prefect", body: charsAlnum, min: 24, bound: true},
	{prefix: "ico-", kind: "infracost", body: charsAlnum, min: 28, need: mixedCase, bound: true},
	{prefix: "API-", kind: "octopus", body: charsUpper, min: 25, need: oneDigit, bound: true},
	{prefix: "jca_", kind: "jumpcloud", body: charsAlnum, min: 24, bound: true},
	{prefix: "sdk-", kind: "launchdarkly", body: charsDash, min: 36, max: 36, need: oneDigit, bound: true},

	{prefix: "glsa_", kind: "grafana", body: charsWord, min: 20},
	{prefix: "glc_", kind: "grafana", body: charsBase64, min: 30, bound: true},
	{prefix: "eyJrIjoi", kind: "grafana", body: charsBase64, min: 20, bound: true},
	{prefix: "sntrys_", kind: "sentry", body: charsBase64, min: 20},
	{prefix: "sntryu_", kind: "sentry", body: charsAlnum, min: 20},
	{prefix: "dt0c01.", kind: "dynatrace", body: charsDot, min: 20},
	{prefix: "dt0s01.", kind: "dynatrace", body: charsDot, min: 20},
	{prefix: "NRAK-", kind: "newrelic", body: charsAlnum, min: 16, bound: true},
	{prefix: "NRII-", kind: "newrelic", body: charsDash, min: 16, bound: true},
	{prefix: "NRRA-", kind: "newrelic", body: charsAlnum, min: 16, bound: true},
	{prefix: "PMAK-", kind: "postman", body: charsDash, min: 20, bound: true},
	{prefix: "PMAT-", kind: "postman", body: charsDash, min: 20, bound: true},

	{prefix: "shpat_", kind: "shopify", body: charsAlnum, min: 20},
	{prefix: "shpss_", kind: "shopify", body: charsAlnum, min: 20},
	{prefix: "shpca_", kind: "shopify", body: charsAlnum, min: 20},
	{prefix: "shppa_", kind: "shopify", body: charsAlnum, min: 20},
	{prefix: "shptka_", kind: "shopify", body: charsAlnum, min: 20},
	{prefix: "lin_api_", kind: "linear", body: charsAlnum, min: 20},
	{prefix: "lin_oauth_", kind: "linear", body: charsAlnum, min: 20},
	{prefix: "lin_wh_", kind: "linear", body: charsAlnum, min: 20},
	{prefix: "ntn_", kind: "notion", body: charsAlnum, min: 30, bound: true},
	{prefix: "secret_", kind: "notion", body: charsAlnum, min: 32, need: oneDigit, bound: true},
	{prefix: "figd_", kind: "figma", body: charsDash, min: 20},
	{prefix: "figo_", kind: "figma", body: charsDash, min: 20},
	{prefix: "tfp_", kind: "typeform", body: charsDash, min: 30, bound: true},
	{prefix: "CFPAT-", kind: "contentful", body: charsDash, min: 20, bound: true},
	{prefix: "pat-na1-", kind: "hubspot", body: charsDash, min: 20},
	{prefix: "pat-eu1-", kind: "hubspot", body: charsDash, min: 20},
	{prefix: "sl.", kind: "dropbox", body: charsDash, min: 60, need: mixedCase, bound: true},
	{prefix: "rdme_", kind: "readme", body: charsAlnum, min: 30, bound: true},
	{prefix: "waka_", kind: "wakatime", body: charsDash, min: 30, bound: true},
	{prefix: "lip_", kind: "lichess", body: charsAlnum, min: 16, need: mixedCase, bound: true},
	{prefix: "aio_", kind: "adafruit", body: charsAlnum, min: 24, need: oneDigit, bound: true},
	{prefix: "p8e-", kind: "adobe", body: charsAlnum, min: 32, bound: true},
	{prefix: "sm_aat_", kind: "settlemint", body: charsAlnum, min: 16},
	{prefix: "WPL_AP1.", kind: "linkedin", body: charsBase64, min: 10},
	{prefix: "pina_", kind: "pinterest", body: charsAlnum, min: 30, bound: true},
	{prefix: "oauth:", kind: "twitch", body: charsAlnum, min: 30, max: 30, need: oneDigit, bound: true},
	{prefix: "syt_", kind: "matrix", body: charsWord, min: 24, need: oneDigit, bound: true},

	{prefix: "SG.", kind: "sendgrid", body: charsDot, min: 30, need: mixedCase, bound: true},
	{prefix: "xkeysib-", kind: "brevo", body: charsDash, min: 30},
	{prefix: "xsmtpsib-", kind: "brevo", body: charsDash, min: 30},
	{prefix: "key-", kind: "mailgun", body: charsAlnum, min: 32, max: 32, need: oneDigit, bound: true},
	{prefix: "-us", kind: "mailchimp", body: charsAlnum, min: 1, max: 2, need: oneDigit, back: 32, backOf: charsAlnum},
	{prefix: "re_", kind: "resend", body: charsWord, min: 24, need: mixedCase, bound: true},
	{prefix: "mlsn.", kind: "mailersend", body: charsAlnum, min: 30, bound: true},
	{prefix: "SK", kind: "twilio", body: charsAlnum, min: 32, max: 32, need: oneDigit, bound: true},
	{prefix: ":AA", kind: "telegram", body: charsDash, min: 30, back: 8, backOf: newCharset(digits)},
	{prefix: "sec-c-", kind: "pubnub", body: charsBase64, min: 30, bound: true},
	{prefix: "AAAAAAAAAAAAAAAAAAAA", kind: "twitter", body: charsPercent, min: 50, need: mixedCase, bound: true},

	{prefix: "AGE-SECRET-KEY-1", kind: "age", body: charsUpper, min: 20},
	{prefix: "RWRTY0Iy", kind: "minisign", body: charsBase64, min: 40, bound: true},
	{prefix: "pat", kind: "airtable", body: charsDot, min: 79, max: 79, need: oneDigit, bound: true},
	// Wallet import format: base58 of a private key behind 0x80, 51 or 52 characters.
	{prefix: "5H", kind: "wallet", body: charsAlnum, min: 49, max: 49, need: mixedCase, bound: true},
	{prefix: "5J", kind: "wallet", body: charsAlnum, min: 49, max: 49, need: mixedCase, bound: true},
	{prefix: "5K", kind: "wallet", body: charsAlnum, min: 49, max: 49, need: mixedCase, bound: true},
	{prefix: "Kw", kind: "wallet", body: charsAlnum, min: 50, max: 50, need: mixedCase, bound: true},
	{prefix: "Kx", kind: "wallet", body: charsAlnum, min: 50, max: 50, need: mixedCase, bound: true},
	{prefix: "Ky", kind: "wallet", body: charsAlnum, min: 50, max: 50, need: mixedCase, bound: true},
	{prefix: "Kz", kind: "wallet", body: charsAlnum, min: 50, max: 50, need: mixedCase, bound: true},
	{prefix: "L1", kind: "wallet", body: charsAlnum, min: 50, max: 50, need: mixedCase, bound: true},
	{prefix: "L2", kind: "wallet", body: charsAlnum, min: 50, max: 50, need: mixedCase, bound: true},
	{prefix: "L3", kind: "wallet", body: charsAlnum, min: 50, max: 50, need: mixedCase, bound: true},
	{prefix: "L4", kind: "wallet", body: charsAlnum, min: 50, max: 50, need: mixedCase, bound: true},
	{prefix: "L5", kind: "wallet", body: charsAlnum, min: 50, max: 50, need: mixedCase, bound: true},
	{prefix: "xprv", kind: "wallet", body: charsAlnum, min: 50, need: mixedCase, bound: true},
	{prefix: "yprv", kind: "wallet", body: charsAlnum, min: 50, need: mixedCase, bound: true},
	{prefix: "zprv", kind: "wallet", body: charsAlnum, min: 50, need: mixedCase, bound: true},
	{prefix: "tprv", kind: "wallet", body: charsAlnum, min: 50, need: mixedCase, bound: true},

	{prefix: "hooks.slack.com/services/", kind: "webhook", body: charsPath, min: 12},
	{prefix: "hooks.slack.com/workflows/", kind: "webhook", body: charsPath, min: 12},
	{prefix: "hooks.slack.com/triggers/", kind: "webhook", body: charsPath, min: 12},
	{prefix: "discord.com/api/webhooks/", kind: "webhook", body: charsPath, min: 12},
	{prefix: "discordapp.com/api/webhooks/", kind: "webhook", body: charsPath, min: 12},
	{prefix: "hooks.zapier.com/hooks/catch/", kind: "webhook", body: charsPath, min: 8},
	{prefix: "webhook.office.com/webhookb2/", kind: "webhook", body: charsPath, min: 12},
	{prefix: "outlook.office.com/webhook/", kind: "webhook", body: charsPath, min: 12},
	{prefix: "open.feishu.cn/open-apis/bot/v2/hook/", kind: "webhook", body: charsPath, min: 12},
	{prefix: "hook.eu1.make.com/", kind: "webhook", body: charsPath, min: 16},
	{prefix: "hook.us1.make.com/", kind: "webhook", body: charsPath, min: 16},
	{prefix: "maker.ifttt.com/use/", kind: "webhook", body: charsPath, min: 12},
	{prefix: "/private-", kind: "webhook", body: charsAlnum, min: 20, need: oneDigit},
	{prefix: "/with/key/", kind: "webhook", body: charsDash, min: 12},
}

// vendorsByByte answers the rows of vendors by the first byte of their prefix.
func vendorsByByte() *[256][]int {
	var rows [256][]int
	for row, v := range vendors {
		rows[v.prefix[0]] = append(rows[v.prefix[0]], row)
	}
	return &rows
}

const (
	judgedBody = 256     // a token is judged by this much of its body, so that refusing it costs a bounded time
	longestRun = 1 << 14 // and reaches no further than this
)

// vendorAt reads the token of vendors[row], whose prefix begins at i. It answers false if this is none.
func (sc *scanner) vendorAt(row, i int) (Finding, bool) {
	v := &vendors[row]
	s := sc.s
	body := i + len(v.prefix)
	if body > len(s) || s[i:body] != v.prefix {
		return Finding{}, false
	}
	start, ok := v.begin(s, i)
	if !ok {
		return Finding{}, false
	}
	end := run(s, body, v.body, judgedBody)
	judged := body
	if v.back > 0 {
		judged = start
	}
	if end-body < v.min || !v.fits(s, body, end) || isPlaceholderToken(s[judged:end]) {
		return Finding{}, false
	}
	end = run(s, end, v.body, longestRun)
	for end-body > v.min && strings.IndexByte(".%?&/:", s[end-1]) >= 0 {
		end--
	}
	if v.kind == "webhook" {
		start = body // the host is no secret
	}
	return Finding{Kind: v.kind, Start: start, End: end}, true
}

// begin answers where the token starts, given where its prefix does.
func (v *vendor) begin(s string, i int) (int, bool) {
	if v.back == 0 {
		return i, !v.bound || startsWord(s, i) && (i == 0 || s[i-1] != '_' && s[i-1] != '-')
	}
	start := i
	for start > 0 && i-start < v.back+4 && v.backOf.has(s[start-1]) {
		start--
	}
	return start, i-start >= v.back
}

func (v *vendor) fits(s string, body, end int) bool {
	if v.max > 0 && (end-body > v.max || end < len(s) && isAlnum(s[end])) {
		return false
	}
	shape := shapeOf(s[body:end])
	switch v.need {
	case oneDigit:
		return shape.digits > 0
	case mixedCase:
		return shape.digits > 0 && shape.uppers > 0 && shape.lowers > 0
	}
	return true
}
