package distill

import "strings"

// The vocabulary of the rules. Each table is a closed class of the language, or a
// list of common words of one meaning; none comes from one conversation.

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

func phraseSet(phrases ...string) map[string]bool {
	set := map[string]bool{}
	for _, p := range phrases {
		set[p] = true
	}
	return set
}

var (
	// firstPerson are pronouns and determiners by which a sentence is about the
	// speaker, in English, German, Spanish, French and Italian.
	firstPerson = wordSet(`i i'm i've i'd i'll ive me my mine myself we we're we've we'd we'll us our ours ourselves
		ich mich mir mein meine meinen meinem meiner meines wir uns unser unsere unseren unserem unserer
		yo mi mis me nos nosotros nosotras nuestro nuestra nuestros nuestras tengo soy estoy vivo trabajo somos tenemos vivimos usamos
		je j'ai mon ma mes nous notre nos suis`)

	// leadIns open a chat sentence and say nothing.
	leadIns = wordSet(`ok okay okey so right well oh ah aha hey hi hello hiya and but also anyway anyhow btw grand yes yeah yep yup no nah nope sure
		good great nice lovely perfect fine cool brilliant thanks thank cheers sorry look listen first second third fourth fifth firstly secondly
		finally lastly plus again then now actually honestly basically ha haha hehe hmm hm um uh er wow man god gosh morning evening afternoon hallo hola tack
		see true exactly correct agreed deal indeed alright aye ach gut ja nein also still anyways quick lol oof ugh yikes argh
		please kindly just note fyi ps today tonight wait`)

	// commaLeads are lead-ins only before a comma or a stop: "first, the dentist",
	// but "first week in May".
	commaLeads = wordSet(`grand good great nice lovely perfect fine cool brilliant look listen first second third fourth fifth finally lastly plus man morning evening
		afternoon see true exactly correct agreed deal indeed note quick today tonight gut`)

	// auxiliaries open yes-no questions when a subject follows.
	auxiliaries = wordSet(`is are was were am do does did don't doesn't didn't can could can't couldn't will would won't wouldn't shall should shouldn't
		have has had haven't hasn't hadn't may might must isn't aren't wasn't weren't ain't`)

	questionWords = wordSet(`what what's whats who who's whose where where's when when's why why's how how's which whats hows
		was wer wo wann warum wie welche welcher qué que quién dónde cuándo cómo cuál`)

	subjectPronouns = wordSet(`i we you he she it they that this these those there`)

	// anaphors at the head of a sentence tie it to the one before.
	anaphors = wordSet(`he she it they he's she's it's they're they've he'll she'll it'll they'll his her their that that's this these those which same both
		neither everything there er sie es ihr sein danach dort das dies ella él esto eso`)

	// kin and roles: nouns that make a name a person.
	kin = wordSet(`mother mum mam mom mama ma father dad papa da brother sister son daughter wife husband partner girlfriend boyfriend fiancé fiancée fiance fiancee
		fella ex spouse twin twins baby toddler kid kids child children boy girl grandmother grandma granny nan nana gran oma grandfather grandpa grandad
		granddad opa grandson granddaughter grandchild aunt auntie uncle cousin nephew nephews niece nieces stepson stepdaughter stepmother stepfather stepdad stepmum
		mother-in-law father-in-law brother-in-law sister-in-law godmother godfather godson goddaughter in-laws parents family flatmate roommate housemate
		mutter vater bruder schwester sohn tochter frau mann freund freundin madre padre hermano hermana hijo hija marido mujer esposa novio novia amigo amiga`)

	roles = wordSet(`boss manager lead colleague coworker co-worker teammate supervisor professor prof teacher tutor coach trainer doctor gp dentist vet surgeon nurse physio
		physiotherapist therapist midwife consultant lawyer solicitor accountant landlord landlady neighbour neighbor friend mate buddy client customer supplier vendor
		contractor electrician plumber builder gardener cleaner babysitter nanny childminder owner founder cofounder co-founder ceo cto cfo director head
		designer developer engineer programmer architect analyst scientist artist composer writer editor producer publisher agent officer secretary assistant
		intern apprentice freelancer student examiner advisor adviser maintainer reviewer admin operator pm chair treasurer captain driver
		baker cook chef waiter barista welder carpenter joiner mechanic farmer pilot photographer musician singer drummer guitarist violinist pianist nurse
		pharmacist paramedic firefighter policeman accountant bookkeeper librarian journalist translator lecturer researcher chemist biologist physicist
		kollege kollegin chef chefin lehrer lehrerin arzt ärztin nachbar nachbarin socio socia vecino vecina jefe jefa`)

	pets = wordSet(`dog cat puppy kitten rabbit bunny hamster parrot budgie horse pony tortoise goldfish hen hens chickens goat goats sheep donkey ferret snake gecko lizard
		lurcher collie labrador poodle terrier spaniel beagle dachshund greyhound whippet hund katze perro gato perra gata`)

	// statives are verbs whose present tense says how things are, not what goes on.
	statives = wordSet(`live lives work works own owns belong belongs use uses run runs speak speaks study studies teach teaches need needs require requires contain contains
		prefer prefers hate hates cost costs weigh weighs measure measures hold holds sit sits stand stands lie lies serve serves support supports depend depends
		handle handles send sends store stores keep keeps listen listens expire expires renew renews wear wears drink drinks eat eats drive drives cycle cycles
		play plays train trains sleep sleeps suffer suffers manage manages maintain maintains deploy deploys ship ships arrive arrives come comes last lasts
		close closes open opens start starts end ends finish finishes mean means limit limits cap caps allow allows accept accepts return returns write writes
		read reads target targets charge charges pay pays earn earns rent rents owe owes take takes bring brings fly flies leave leaves meet meets stay stays host hosts
		sell sells make makes grow grows feed feeds bake bakes brew brews supply supplies deliver delivers order orders do does look looks get gets
		have has had want wants hosts lends pays covers expects counts insure insures bank banks lease leases subscribe subscribes partition calls named called born lived worked
		wohne wohnt wohnen arbeite arbeitet arbeiten heißt heißen kommt trinke trinkt esse isst spreche spricht sprechen lerne lernt speichern behalten nutzen benutzen verwenden brauche brauchen braucht
		habe haben hat bin ist sind fahren fahre kostet gilt
		vive vivo trabaja trabajo tiene tengo usa uso usamos necesita necesito es somos soy está están cuesta`)

	// changes are verbs that leave a new state behind, in the past or the perfect,
	// and in the progressive where that speaks of a plan.
	changes = wordSet(`moved moving bought buying sold selling started starting quit quitting left leaving joined joining signed switched switching changed changing
		booked ordered enrolled registered hired fired adopted got married engaged divorced retired resigned promoted graduated passed failed finished
		migrated migrating replaced replacing dropped dropping cancelled canceled postponed rescheduled shifted delayed pushed extended renewed upgraded updated downgraded
		fixed resolved solved found discovered deployed released launched merged deleted removed added installed broke died drowned lost stolen
		diagnosed allergic prescribed operated decided agreed chose chosen picked settled hurt sprained tore injured
		bumped raised lowered increased reduced doubled halved capped set signed paid won received confirmed approved rejected accepted
		became become becoming taking doing getting going expecting planning learning training stopped dumped swapped swapping ditched closed opened
		umgezogen gekauft verkauft angefangen gewechselt geändert verschoben beschlossen compramos compré vendimos empecé cambiamos decidimos mudamos`)

	// health words make a statement about the speaker worth keeping.
	health = wordSet(`physio physiotherapist allergic allergy allergies intolerant intolerance asthma asthmatic diabetes diabetic coeliac celiac epilepsy epileptic migraine migraines hypertension
		pregnant pregnancy vegetarian vegan pescatarian teetotal insulin inhaler epipen medication antibiotics penicillin tablets pills dose surgery operation op hip knee
		diagnosis diagnosed anaemia anaemic blood arthritis eczema hay-fever hayfever lactose gluten nuts peanut peanuts shellfish latex fracture fractured
		sprained vertigo thyroid cholesterol pacemaker dialysis depression anxiety adhd autism autistic dyslexic dyslexia colourblind deaf
		allergisch allergie unverträglichkeit vegetarierin vegetarier schwanger alérgico alérgica alergia embarazada vegetariano vegetariana`)

	// selfWords say lastingly who somebody is, of what faith, family or way of life.
	selfWords = wordSet(`married single divorced separated widowed engaged retired unemployed self-employed freelance adopted bilingual left-handed right-handed
		blind colour-blind color-blind colourblind colorblind hard-of-hearing wheelchair-bound short-sighted near-sighted nearsighted
		muslim jewish catholic protestant christian orthodox hindu buddhist sikh atheist agnostic quaker mormon halal kosher gay lesbian bisexual trans transgender non-binary nonbinary queer asexual
		vegetarian vegan pescatarian teetotal sober flexitarian omnivore gluten-free
		introvert extrovert veteran orphan twin vet widow widower pensioner refugee immigrant expat native
		verheiratet geschieden ledig casado casada soltero soltera divorciado divorciada jubilado jubilada`)

	// habitual words say that something holds again and again.
	habitual = wordSet(`always never every each usually normally typically generally mostly weekly daily monthly yearly nightly fortnightly annually quarterly hourly ever only
		mondays tuesdays wednesdays thursdays fridays saturdays sundays weekdays weekends mornings evenings nights days
		immer nie niemals jeden jede jedes nur meistens montags dienstags mittwochs donnerstags freitags samstags sonntags siempre nunca cada todos todas solo
		per`)

	// bounds are the words of rules, limits and deadlines.
	bounds = wordSet(`must required requires requirement mandatory limit limits limited max maximum min minimum least most deadline due budget cap quota contract policy rule rules
		allowed forbidden banned target threshold retention timeout supported unsupported compatible default until by within under above below over between
		needs muss müssen darf dürfen debe deben`)

	// issueWords tell of something that does not work, and endings of it.
	issueWords = wordSet(`bug bugs broken fails failed failing failure crash crashes crashed crashing error errors leak leaks leaking hangs hanging timeout timeouts flaky
		wrong corrupt corrupted deadlock outage regression slow stuck dies died dead incident overflow wraps panics panic segfault stutter stutters
		kaputt fehler`)
	fixWords = wordSet(`fixed resolved solved repaired patched closed sorted works healed cured gone behoben repariert arreglado`)

	// transient adjectives and participles describe the moment.
	transient = wordSet(`tired wrecked exhausted knackered hungry thirsty starving bored busy late early back home here there done ready awake asleep sick cold hot warm happy sad
		sorry glad sure afraid delighted excited nervous stressed annoyed angry raging fine ok okay grand good great bad well better worse alive confused lost stuck
		curious impressed amazed surprised typing sitting standing lying waiting looking thinking wondering kidding joking talking trying working walking watching laughing crying
		dreaming freezing melting dying icing heading running serious right wrong`)

	// tentative words keep a sentence from being a decision or a fact.
	tentative = wordSet(`maybe perhaps possibly might mightn't undecided unsure wondering considering tempted dunno vielleicht eventuell quizás quizá`)

	// units make a number a measure.
	units = wordSet(`% percent euro euros eur € $ £ dollars pounds quid usd gbp chf sek nok kr yen k m km kms kilometres kilometers miles mile metres meters cm mm inch inches feet
		kg kgs kilo kilos grams gram g mg ml l litre litres liter liters cups hours hour hrs hr h minutes minute mins min seconds second secs s ms days day weeks week
		months month years year tage tagen wochen stunden jahre días horas años gb mb tb kb gib mib tib kw kwh w v hz khz mhz ghz fps rps qps msg/s req/s rows records users
		people persons guests seats rooms floor pieces pages words chapters degrees celsius fahrenheit times characters tokens chars nodes replicas servers docks units items
		c square am pm o'clock uhr`)

	numberWords = wordSet(`two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
		million once twice half dozen zwei drei vier fünf sechs sieben acht neun zehn dos tres cuatro cinco seis siete ocho nueve diez`)

	calendarWords = wordSet(`monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december
		tomorrow yesterday tonight noon midnight christmas easter
		montag dienstag mittwoch donnerstag freitag samstag sonntag lunes martes miércoles jueves viernes sábado domingo`)

	// functionWords carry no topic. A capital at the head of a sentence does not
	// make one of them a name.
	functionWords = wordSet(`a an the this that these those some any all each every no one two other another such same
		and or but so because since as if when whenever while until till before after than then though although unless whether
		of in on at by for with from to into onto over under about around between through during without within against towards up down out off near across behind
		i you he she it we they me him her us them my your his its our their mine yours hers ours theirs myself yourself himself herself itself themselves
		is are was were be been being am do does did done doing have has had having can could will would shall should may might must let's let got get gets getting
		not don't doesn't didn't isn't aren't wasn't can't won't i'm i've i'd i'll you're you've he's she's it's we're we've we'll we'd they're they've that's there's here's what's who's
		what who whom whose which where why how there here now just only also too very really quite still already yet again even ever never always once
		more most much many few less least lot lots bit well more than like go goes going went gone come comes came coming make makes made take takes took taken
		want wants need needs know knows knew think thinks thought say says said tell tells told see sees saw look looks
		thing things stuff way kind sort one ones something anything nothing everything someone anyone nobody everybody
		yes no ok okay please thanks today der die das ein eine und oder aber ist sind war nicht mit für von zu im am el la los las un una y o pero es son con para de en que`)
)
