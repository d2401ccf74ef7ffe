package distill

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// tongue holds stems of one language: of the words by which a text tells an
// assistant to drop what it was told, waits for the user, or speaks for the user.
type tongue struct {
	drop   []string // ignore, forget
	orders []string // instructions, rules
	before []string // previous, all, your
	user   []string // the user, the owner
	when   []string // when, as soon as
	claims []string // has approved, consents, wants
	memory []string // your memory
	obey   []string // follow, obey
	only   []string // from now on, only
	void   []string // no longer in force
	retain []string // remember, save: what a text wants to be kept
}

// The stems stand as they are written; they are folded as texts are.
var tongueTable = []tongue{
	{ // German
		drop: list(`ignorier|vergiss|vergesse|vergesst|missachte|übergeh|verwirf|nicht mehr befolg|befolge nicht|befolge keine`), orders: list(`gesagt wurde|gesagt worden|beigebracht|aufgetragen|anweisung|instruktion|befehl|regel|vorgabe|richtlinie|systemprompt|system-prompt|auftr`),
		before: list(`alle|bisherig|vorherig|vorig|obig|früher|deine|ihre|sämtlich|system`), user: list(`nutzer|benutzer|anwender|kontoinhaber|betreiber|besitzer`), when: list(`wenn|sobald|falls|jedes mal|immer wenn`),
		claims: list(`keine bestätigung|ohne bestätigung|ohne rückfrage|zugestimmt|genehmigt|erlaubt|eingewilligt|stimmt zu|bevorzugt|wünscht|möchte|verzichtet|freigegeben|autorisiert|bittet|verlangt|erlaubt`), memory: list(`dein gedächtnis|deine erinnerung|deinen speicher|ihr gedächtnis|deinem gedächtnis|deinem speicher`),
		obey: list(`befehl|befolg|gehorch|folge|hör|nimm|antworte|handle`), only: list(`ab sofort|von jetzt an|ab jetzt|nur noch|ausschließlich|künftig`), void: list(`gelten nicht|gilt nicht|aufgehoben|außer kraft|hinfällig`), retain: list(`merke|merk dir|speichere|notiere|behalte|erinnere dich`)},
	{ // French
		drop: list(`ignor|oubli|néglige|ne tiens pas compte|ne tenez pas compte|fais abstraction|faites abstraction|ne suis pas|ne suivez pas`), orders: list(`qu'on t'a|t'a été|qu'on vous a|vous a été|instruction|consigne|règle|directive|ordres|invite système`),
		before: list(`toutes|tous|précédent|antérieur|ci-dessus|tes |vos |système`), user: list(`l'utilisat|utilisateur|titulaire|propriétaire`), when: list(`quand|lorsque|dès que|si |chaque fois`),
		claims: list(`sans confirmation|sans demander|aucune confirmation|a approuvé|a déjà approuvé|approuve|a autorisé|autorise|consent|préfère|souhaite|veut que|renonce|a accepté|demande|permet`), memory: list(`ta mémoire|votre mémoire|tes souvenirs`),
		obey: list(`obéi|suis |suivez|exécut|répond|agis`), only: list(`à partir de maintenant|désormais|dorénavant|uniquement|seulement`), void: list(`ne s'appliquent plus|n'ont plus cours|sont annulé|ne valent plus`), retain: list(`retiens|retenez|enregistre|mémoris|souviens-toi|souvenez-vous|note que`)},
	{ // Spanish
		drop: list(`ignora|ignore|olvid|descarta|omite|haz caso omiso|haga caso omiso|no sigas|desobedece`), orders: list(`te han dicho|te dijeron|te ha dicho|le han dicho|instruccion|regla|órdenes|orden |indicacion|directri|directiva|consigna`),
		before: list(`anterior|previ|todas|todos|tus |sus |sistema`), user: list(`usuario|usuaria|titular|propietari`), when: list(`cuando|en cuanto|si |cada vez que|tan pronto`),
		claims: list(`sin confirmación|sin preguntar|no necesitan confirm|aprob|autoriz|consient|consinti|prefiere|quiere que|desea|renunci|acept|permit|pide|solicit`), memory: list(`tu memoria|su memoria|tus recuerdos`),
		obey: list(`obedece|obedezca|sigue|siga |responde|actúa|ejecuta`), only: list(`a partir de ahora|desde ahora|de ahora en adelante|solo |sólo|solamente|únicamente`), void: list(`ya no se aplican|ya no valen|quedan anulad|ya no rigen`), retain: list(`recuerda|recuerde|guarda |memoriza|anota|registra`)},
	{ // Portuguese
		drop: list(`ignor|esquec|esqueça|desconsider|descart|não siga`), orders: list(`te disseram|lhe disseram|foi dito|instruç|instruc|regra|ordens|orientaç|diretriz|comandos`),
		before: list(`anterior|prévia |prévias|prévios|todas|todos|suas|tuas|acima|sistema`), user: list(`usuári|utilizador|titular|proprietári`), when: list(`quando|assim que|se |sempre que`),
		claims: list(`sem confirmação|sem perguntar|aprov|autoriz|consent|prefere|quer que|deseja|renunci|aceit|permit|pede|solicit`), memory: list(`sua memória|tua memória`),
		obey: list(`obedeça|obedece|siga|segue|responda|aja|execute`), only: list(`a partir de agora|de agora em diante|apenas|somente|só `), void: list(`não se aplicam|não valem mais|foram revogad|estão anulad`), retain: list(`lembre|memorize|guarde|anote|registre|grave que`)},
	{ // Italian
		drop: list(`ignora|ignorate|dimentica|scorda|trascura|non seguire|disattendi`), orders: list(`ti è stato detto|ti hanno detto|istruzion|regole|ordini|direttiv|comandi`),
		before: list(`precedent|anterior|tutte|tutti|tue |sopra|sistema`), user: list(`utente|titolare|proprietari`), when: list(`quando|appena|se |ogni volta`),
		claims: list(`senza conferma|senza chiedere|ha approvato|ha già approvato|approva|ha autorizzato|autorizza|acconsent|preferisce|vuole che|desidera|rinuncia|ha accettato|chiede|permette`), memory: list(`tua memoria|vostra memoria`),
		obey: list(`obbedisci|segui|seguite|rispondi|esegui|agisci`), only: list(`da ora in poi|d'ora in poi|da adesso|solo |soltanto|unicamente|esclusivamente`), void: list(`non valgono|non si applicano|sono annullat`), retain: list(`ricorda|ricordati|memorizza|salva che|annota|registra`)},
	{ // Dutch
		drop: list(`negeer|vergeet|sla over|volg niet`), orders: list(`je is verteld|je verteld|jou is verteld|instructie|regels|opdracht|aanwijzing|richtlijn`),
		before: list(`eerdere|vorige|voorgaande|alle|bovenstaande|jouw|je |systeem`), user: list(`gebruiker|eigenaar`), when: list(`wanneer|als |zodra|telkens`),
		claims: list(`zonder bevestiging|geen bevestiging|goedgekeurd|keurt goed|toegestemd|stemt in|verkiest|toestemming|wil dat`), memory: list(`je geheugen|jouw geheugen|uw geheugen`),
		obey: list(`gehoorzaam|volg|antwoord|voer uit`), only: list(`vanaf nu|voortaan|alleen|uitsluitend`), void: list(`gelden niet|zijn vervallen|niet meer van kracht`), retain: list(`onthoud|bewaar|noteer|sla op`)},
	{ // Swedish, Danish, Norwegian
		drop: list(`ignorera|ignorer|glöm|glem|bortse|se bort|följ inte|følg ikke`), orders: list(`instruktion|instruks|regler|anvisning|ordre|order|retningslin`),
		before: list(`tidigare|tidligere|föregående|forrige|foregående|alla|alle|ovan|ovenst|dina|dine`), user: list(`användaren|brukeren|brugeren|ägaren`), when: list(`när |når |så snart|om |hvis `),
		claims: list(`godkänt|godkjent|godkendt|samtyck|samtykk|föredrar|foretrekker|foretrækker|har tillåt|har tillat`), memory: list(`ditt minne|dit minde|din hukommelse|minnet ditt|hukommelsen din`),
		obey: list(`lyd|följ|følg|svara|svar `), only: list(`från och med nu|fra nå av|fra nu av|hädanefter|bara|kun |endast`), retain: list(`kom ihåg|husk|spara att|lagre|notera|noter `)},
	{ // Finnish
		drop: list(`unohda|ohita|jätä huomiotta|älä noudata|älä välitä`), orders: list(`ohje|säännö|sääntö|määräy|käsky`), before: list(`aiem|edelli|kaikki|yllä|aikaisem`), user: list(`käyttäjä`), when: list(`kun |jos |heti kun|aina kun`),
		claims: list(`hyväksyn|suostu|antanut luvan|haluaa`), memory: list(`muistisi|muistiasi`),
		obey: list(`tottele|noudata|seuraa|vastaa`), only: list(`tästä lähtien|tästä eteenpäin|vain |ainoastaan`), retain: list(`muista|tallenna|kirjaa`)},
	{ // Polish
		drop: list(`ignoruj|zignoruj|zapomnij|pomiń|nie stosuj|nie przestrzegaj`), orders: list(`instrukcj|poleceni|polece|zasad|wytyczn|reguł`), before: list(`poprzedni|wcześniejsz|wszystki|powyższ|twoje|swoje|system`),
		user: list(`użytkowni|właściciel`), when: list(`gdy |kiedy |jeśli|jak tylko|za każdym`), claims: list(`bez potwierdzenia|nie wymaga potwierdzenia|zatwierdz|zgodzi|zezwol|wyraził zgod|woli |chce `), memory: list(`twoją pamięć|swoją pamięć|twojej pamięci|swojej pamięci`),
		obey: list(`słuchaj|wykonuj|odpowiadaj|postępuj|stosuj`), only: list(`od teraz|od tej chwili|tylko|wyłącznie|jedynie`), void: list(`nie obowiązują|są nieważne|unieważn`), retain: list(`zapamiętaj|zapisz|pamiętaj|zanotuj`)},
	{ // Czech and Slovak
		drop: list(`ignoruj|zapomeň|zapomen|přehlíž|nedbej|nenásleduj`), orders: list(`pokyn|instrukc|inštrukc|pravid|příkaz|príkaz`), before: list(`předchoz|predchádz|dřívějš|všechn|všetk|tvoje|své`),
		user: list(`uživatel|používateľ`), when: list(`když|keď|jakmile|jestliže|ak `), claims: list(`schválil|souhlas|súhlas|povolil|preferuje|chce`), memory: list(`svou paměť|tvou paměť|svoju pamäť`),
		obey: list(`poslouchej|plň|následuj|odpovídej|říď|dodržuj`), only: list(`od teď|odteď|od této chvíle|pouze|jen |výhradně|len `), retain: list(`zapamatuj|ulož|pamatuj|zapamätaj|zapiš`)},
	{ // Hungarian
		drop: list(`hagyd figyelmen kívül|felejtsd el|ignoráld|ne kövesd`), orders: list(`utasítás|szabály|parancs`), before: list(`korábbi|előző|összes|fenti|minden`), user: list(`felhasználó`), when: list(`amikor|ha |amint`),
		claims: list(`jóváhagyta|beleegyez|engedélyez`), memory: list(`memóriádat|emlékezeted`),
		obey: list(`engedelmeskedj|kövesd|hajtsd|válaszolj`), only: list(`mostantól|ezentúl|csak|kizárólag`), retain: list(`jegyezd meg|emlékezz|mentsd`)},
	{ // Romanian
		drop: list(`ignoră|ignora|uită|nu urma`), orders: list(`instrucțiun|instrucţiun|instructiun|reguli|ordine`), before: list(`anterioar|precedent|toate|de mai sus|tale`), user: list(`utilizator`), when: list(`când|dacă|de îndată`),
		claims: list(`aprobat|autorizat|consimț|preferă|a permis`), memory: list(`memoria ta`),
		obey: list(`ascultă|urmează|execută|răspunde`), only: list(`de acum înainte|de acum|doar|numai`), retain: list(`reține|memorează|salvează|ține minte`)},
	{ // Russian
		drop: list(`игнорир|проигнорир|забудь|не обращай внимани|не следуй|отмени|отбрось`), orders: list(`тебе говорили|тебе сказали|тебе велели|вам сказали|инструкц|указани|правил|команд|приказ|промпт`), before: list(`предыдущ|прежн|все |всех|всю|выше|твои|свои|систем`),
		user: list(`пользовател|владел`), when: list(`когда|если|как только|каждый раз`), claims: list(`без подтвержден|не требует подтвержден|одобрил|разрешил|согласен|согласил|предпочит|хочет|уполномоч|просит|требует|велит`), memory: list(`твою памят|свою памят|вашу памят|твоей памят|своей памят`),
		obey: list(`выполняй|следуй|слушай|подчиня|исполняй|отвечай`), only: list(`с этого момента|отныне|впредь|только|исключительно`), void: list(`больше не действу|отменены|утратили силу`), retain: list(`запомни|сохрани|запиши|учти`)},
	{ // Ukrainian
		drop: list(`ігнору|проігнору|забудь|не зважай|не виконуй`), orders: list(`вказівк|інструкц|правил|наказ|команд`), before: list(`попередн|усі|всі|вище|твої|свої|систем`),
		user: list(`користувач|власник`), when: list(`коли|якщо|щойно|щоразу`), claims: list(`схвалив|дозволив|погодив|згоден|хоче`), memory: list(`твою пам|свою пам`),
		obey: list(`виконуй|слухай|дотримуй|відповідай`), only: list(`відтепер|з цього моменту|надалі|лише|тільки`), retain: list(`запам'ятай|запамятай|збережи|запиши`)},
	{ // Bulgarian, Serbian
		drop: list(`игнорирай|забрави|игнориши|занемари|заборави`), orders: list(`инструкци|указани|правила|упутств|наредб`), before: list(`предишн|претходн|всички|сва |све `), user: list(`потребител|корисник`), when: list(`когато|ако |кад `),
		claims: list(`одобри|разреши|съгласи|дозволио`), memory: list(`паметта си|своју меморију`),
		obey: list(`изпълнявай|следвай|слушай|слушај|прати`), only: list(`отсега|от сега|само|од сада`), retain: list(`запомни|запамети|запази|сачувај`)},
	{ // Greek
		drop: list(`αγνόησε|αγνοήστε|αγνοείστε|ξέχασε|ξεχάστε|μην ακολουθ`), orders: list(`οδηγί|εντολ|κανόν|κανόνες`), before: list(`προηγούμεν|όλες|όλους|όλα|παραπάνω`), user: list(`χρήστη|χρήστης`), when: list(`όταν|αν |μόλις|κάθε φορά`),
		claims: list(`ενέκρινε|εγκρίνει|συναινεί|επιτρέπει|θέλει`), memory: list(`μνήμη σου`),
		obey: list(`υπάκου|ακολούθ|εκτέλεσε|απάντα`), only: list(`από εδώ και πέρα|από τώρα|μόνο|αποκλειστικά`), retain: list(`θυμήσου|αποθήκευσε|σημείωσε|απομνημόνευσε`)},
	{ // Turkish
		drop: list(`yok say|görmezden gel|unut|dikkate alma|göz ardı|uyma`), orders: list(`talimat|komut|kural|yönerge|emir`), before: list(`önceki|tüm |bütün|yukarıdaki|tüm|sistem`), user: list(`kullanıcı|hesap sahibi`), when: list(`zaman|eğer|her sefer|-ınca|dediğinde|derse|sorarsa|yazarsa`),
		claims: list(`onayla|izin ver|kabul et|tercih ed|rıza`), memory: list(`hafızanı|belleğini`),
		obey: list(`uymalı|talimatlarına uy|talimatlara uy|kurallara uy|uyun|itaat et|takip et|yerine getir|cevap ver`), only: list(`bundan sonra|şu andan itibaren|bundan böyle|yalnızca|sadece`), void: list(`geçersiz|artık geçerli değil`), retain: list(`hatırla|kaydet|unutma|aklında tut|not et`)},
	{ // Arabic
		drop: list(`تجاهل|انس |إنس |اهمل|أهمل|لا تتبع`), orders: list(`تعليمات|أوامر|اوامر|قواعد|توجيهات|إرشادات`), before: list(`السابق|جميع|كل |أعلاه|السالفة`), user: list(`المستخدم|المالك|صاحب الحساب`), when: list(`عندما|إذا|حالما|كلما`),
		claims: list(`وافق|أذن|سمح|يفضل|يريد|فوض`), memory: list(`ذاكرتك`),
		obey: list(`اتبع|أطع|نفذ|أجب|التزم`), only: list(`من الآن فصاعد|من الان|فقط|ابتداء من`), void: list(`لم تعد سارية|ملغاة`), retain: list(`تذكر|احفظ|سجل|خزن`)},
	{ // Persian
		drop: list(`نادیده بگیر|فراموش کن|بی توجه|بی` + "\u200c" + `توجه`), orders: list(`دستور|قوانین|راهنما|قواعد`), before: list(`قبلی|تمام|همه|پیشین|بالا`), user: list(`کاربر`), when: list(`وقتی|اگر|هرگاه|به محض`), claims: list(`تایید کرد|تأیید کرد|اجازه داد|موافق`), memory: list(`حافظه خود|حافظه` + "\u200c" + `ات|حافظه ات`),
		obey: list(`پیروی|اطاعت|اجرا کن|دنبال کن`), only: list(`از این پس|از حالا|فقط|تنها`), retain: list(`به خاطر بسپار|ذخیره کن|یادت باشد`)},
	{ // Hebrew
		drop: list(`התעלם|תתעלם|התעלמי|התעלמו|שכח|תשכח`), orders: list(`הוראות|הנחיות|פקודות|כללים`), before: list(`קודמ|כל |לעיל|שלך`), user: list(`המשתמש|בעל החשבון`), when: list(`כאשר|כש|אם |ברגע`), claims: list(`אישר|הסכים|מסכים|מעדיף|התיר`), memory: list(`הזיכרון שלך|זיכרונך`),
		obey: list(`ציית|עקוב|בצע|פעל לפי`), only: list(`מעתה|מעכשיו|רק `), retain: list(`זכור|שמור|רשום`)},
	{ // Hindi
		drop: list(`अनदेखा|नज़रअंदाज|नजरअंदाज|भूल जा|उपेक्षा`), orders: list(`निर्देश|आदेश|नियम|हिदायत`), before: list(`पिछले|पहले|सभी|उपरोक्त|पूर्व`), user: list(`उपयोगकर्ता|यूज़र|मालिक`), when: list(`जब |यदि|अगर|जैसे ही`), claims: list(`मंज़ूर|मंजूर|अनुमति|सहमत|स्वीकृ`), memory: list(`अपनी स्मृति|अपनी मेमोरी|अपनी याददाश्त`),
		obey: list(`पालन|अनुसरण|मानो|मानें`), only: list(`अब से|आज से|केवल|सिर्फ`), retain: list(`याद रख|सहेज|नोट कर`)},
	{ // Bengali
		drop: list(`উপেক্ষা|ভুলে যা|অগ্রাহ্য`), orders: list(`নির্দেশ|নিয়ম|আদেশ`), before: list(`আগের|পূর্ববর্তী|সব |সমস্ত|সকল`), user: list(`ব্যবহারকারী`), when: list(`যখন|যদি`), claims: list(`অনুমোদন|অনুমতি|সম্মত`), memory: list(`তোমার স্মৃতি|আপনার স্মৃতি`),
		obey: list(`অনুসরণ|মেনে চল|পালন`), only: list(`এখন থেকে|শুধু|কেবল`), retain: list(`মনে রাখ|সংরক্ষণ`)},
	{ // Urdu
		drop: list(`نظر انداز|بھول جا`), orders: list(`ہدایات|احکامات|قواعد`), before: list(`پچھلی|پچھلے|تمام|سابقہ`), user: list(`صارف`), when: list(`جب |اگر`), claims: list(`منظور|اجازت|متفق`), memory: list(`اپنی یادداشت`),
		obey: list(`عمل کر|پیروی`), only: list(`اب سے|صرف`), retain: list(`یاد رکھ|محفوظ کر`)},
	{ // Thai
		drop: list(`เพิกเฉย|ละเว้น|ลืม|ไม่ต้องสนใจ|ไม่สนใจ|มองข้าม`), orders: list(`คำสั่ง|คำแนะนำ|กฎ`), before: list(`ก่อนหน้า|ทั้งหมด|ข้างต้น|เดิม`), user: list(`ผู้ใช้`), when: list(`เมื่อ|ถ้า|ทันทีที่`), claims: list(`อนุมัติ|ยินยอม|อนุญาต`), memory: list(`ความจำของคุณ`),
		obey: list(`ทำตาม|เชื่อฟัง|ปฏิบัติตาม`), only: list(`นับจากนี้|ตั้งแต่นี้|เท่านั้น|จากนี้ไป`), retain: list(`จำไว้|บันทึก|จดจำ`)},
	{ // Vietnamese
		drop: list(`bỏ qua|quên|phớt lờ|không tuân`), orders: list(`hướng dẫn|chỉ dẫn|lệnh|quy tắc|chỉ thị`), before: list(`trước|mọi |tất cả|ở trên`), user: list(`người dùng`), when: list(`khi |nếu |ngay khi`), claims: list(`phê duyệt|đồng ý|cho phép`), memory: list(`bộ nhớ của bạn`),
		obey: list(`tuân theo|nghe theo|làm theo|thực hiện`), only: list(`từ bây giờ|từ nay|chỉ `), retain: list(`hãy nhớ|ghi nhớ|lưu lại|nhớ rằng`)},
	{ // Indonesian and Malay
		drop: list(`abaikan|lupakan|jangan ikuti`), orders: list(`instruksi|perintah|aturan|arahan|peraturan`), before: list(`sebelum|semua|di atas|terdahulu`), user: list(`pengguna`), when: list(`ketika|jika|apabila|saat |setiap kali`), claims: list(`menyetujui|setuju|mengizinkan|membenarkan`), memory: list(`ingatanmu|memorimu|memori anda`),
		obey: list(`patuhi|ikuti|turuti|laksanakan`), only: list(`mulai sekarang|dari sekarang|hanya|mulai saat ini`), retain: list(`ingat|simpan|catat`)},
	{ // Filipino and Swahili
		drop: list(`balewalain|kalimutan|huwag pansinin|huwag sundin|puuza|sahau`), orders: list(`tagubilin|utos|tuntunin|maagizo|maelekezo|kanuni`), before: list(`nakaraan|lahat|naunang|yote|awali|zote`), user: list(`gumagamit|mtumiaji`), when: list(`kapag|kung |wakati|ikiwa`),
		claims: list(`inaprubahan|pumayag|ameidhinisha|amekubali`), memory: list(`memorya mo|kumbukumbu yako`),
		obey: list(`sundin|sumunod|fuata|tii`), only: list(`mula ngayon|lamang|kuanzia sasa|tu `), retain: list(`tandaan|itala|kumbuka|hifadhi`)},
	{ // Chinese
		drop: list(`忽略|无视|無視|忘记|忘記|忘掉|不要理会|不理会|抛开|拋開|取消|不要遵守|不再遵守|不用管|别管`), orders: list(`指令|指示|命令|规则|規則|提示词|提示詞|提示|说明|設定|设定|限制`), before: list(`之前|以上|先前|上面|前面|所有|一切|原来|此前|系统|系統|你的`),
		user: list(`用户|使用者|用戶|账户持有人|主人`), when: list(`当|當|如果|一旦|每当|每當|只要|的时候|的時候`), claims: list(`无需确认|不需要确认|無需確認|无需批准|批准|同意|授权|授權|允许|允許|许可|放弃|希望|偏好|要求|请求|已确认|管理员`), memory: list(`你的记忆|你的記憶|你的内存|更新记忆|修改记忆`),
		obey: list(`听从|遵循|遵守|服从|執行|执行|聽從|服從`), only: list(`从现在|從現在|从此|今后|今後|只|仅`), void: list(`不再适用|作废|失效|无效`), retain: list(`请记住|記住|记住|请保存|保存到|牢记|记下`)},
	{ // Japanese
		drop: list(`無視|忘れ|従わな|破棄|取り消`), orders: list(`指示|命令|指令|ルール|プロンプト|規則|制約`), before: list(`以前|これまで|上記|すべて|全て|前の|今まで|システム|先の`), user: list(`ユーザー|ユーザ|利用者|所有者`), when: list(`たら|とき|場合|れば|度に|際に`),
		claims: list(`確認は不要|確認なし|確認不要|承認|同意|許可|希望|好む|好み|依頼|求め|管理者`), memory: list(`あなたの記憶|君の記憶|メモリを更新|記憶を更新`),
		obey: list(`従っ|従い|従え|守っ|実行`), only: list(`今後|今から|これから|だけ|のみ`), void: list(`適用されない|適用されません|無効です|無効とな`), retain: list(`覚えて|記憶して|保存して|記録して`)},
	{ // Korean
		drop: list(`무시|잊어|잊으|따르지 마|따르지 말`), orders: list(`지시|명령|규칙|지침|프롬프트|제한`), before: list(`이전|모든|위의|앞의|기존|시스템`), user: list(`사용자|소유자`), when: list(`하면|때|면 |마다`), claims: list(`승인|동의|허락|허용|선호|요청|원하`), memory: list(`네 기억|당신의 기억|기억을 수정|메모리를 수정`),
		obey: list(`따르|복종|실행하`), only: list(`지금부터|앞으로|만 |오직`), void: list(`무효|적용되지`), retain: list(`기억해|저장해|기억하|기록해`)},
}

func list(s string) []string { return strings.Split(s, "|") }

// tongues are the table's stems, folded.
var tongues = sync.OnceValue(func() []tongue {
	out := make([]tongue, len(tongueTable))
	for i, t := range tongueTable {
		out[i] = tongue{foldAll(t.drop), foldAll(t.orders), foldAll(t.before), foldAll(t.user), foldAll(t.when), foldAll(t.claims), foldAll(t.memory), foldAll(t.obey), foldAll(t.only), foldAll(t.void), foldAll(t.retain)}
	}
	return out
})

func foldAll(stems []string) []string {
	out := make([]string, len(stems))
	for i, s := range stems {
		out[i] = foldScript(s)
	}
	return out
}

// inTongues returns what a text says in one of the languages of the table that a
// memory must not carry, or "". Each sign needs its words within one sentence.
func inTongues(s string, fromUser bool) string {
	folded := foldScript(s)
	whole, near := newGrams(folded), make([]tongue, 0, len(tongueTable))
	for _, t := range tongues() {
		if t.near(whole) {
			near = append(near, t)
		}
	}
	if len(near) == 0 {
		return ""
	}
	for sentence := range strings.FieldsFuncSeq(folded, func(r rune) bool { return strings.ContainsRune(".!?;\n。！？؟।", r) }) {
		for _, t := range near {
			switch {
			case anyOf(sentence, t.drop) && anyOf(sentence, t.orders) && anyOf(sentence, t.before) && (!fromUser || opensWith(sentence, t.drop)):
				return asksToDrop
			case fromUser:
			case anyOf(sentence, t.void) && anyOf(sentence, t.orders) && anyOf(sentence, t.before):
				return asksToDrop
			case anyOf(sentence, t.drop) && anyOf(sentence, t.orders) && opensWith(sentence, t.drop):
				return asksToDrop
			case anyOf(sentence, t.user) && anyOf(sentence, t.when):
				return "is set off by words of the user"
			case anyOf(sentence, t.user) && anyOf(sentence, t.claims):
				return "speaks for the user"
			case anyOf(sentence, t.memory), anyOf(sentence, t.retain) && opensWith(sentence, t.retain) && (anyOf(sentence, t.user) || anyOf(sentence, t.claims) || anyOf(sentence, t.only) || anyOf(sentence, t.obey)):
				return "tells what to do with memory"
			case anyOf(sentence, t.obey) && anyOf(sentence, t.only) && (anyOf(sentence, t.orders) || opensWith(sentence, t.only) || opensWith(sentence, t.obey)):
				return "gives the assistant orders"
			}
		}
	}
	return ""
}

// near reports whether a text holds the words that a sign in this language is made
// of, in whatever sentence and order.
func (t tongue) near(text *grams) bool {
	any := func(stems []string) bool { return slices.ContainsFunc(stems, text.holds) }
	return any(t.orders) && (any(t.drop) || any(t.void)) || any(t.user) && (any(t.when) || any(t.claims)) || any(t.memory) || any(t.retain) || any(t.obey) && any(t.only)
}

// anyOf reports whether a sentence holds a stem at the start of a word; in scripts
// that are written without spaces, anywhere.
func anyOf(sentence string, stems []string) bool {
	for _, stem := range stems {
		for from := 0; ; {
			at := strings.Index(sentence[from:], stem)
			if at < 0 {
				break
			}
			if at += from; startsWord(sentence, at) {
				return true
			}
			from = at + len(stem)
		}
	}
	return false
}

// opensWith reports whether a sentence gives an order: a stem stands near its head.
// In scripts other than the European ones, where the verb may come last, any
// place will do.
func opensWith(sentence string, stems []string) bool {
	const head = 8 // characters before it: a word of courtesy
	sentence = strings.TrimSpace(sentence)
	if first := firstRune(sentence); !unicode.In(first, unicode.Latin, unicode.Cyrillic, unicode.Greek) {
		return true
	}
	for _, stem := range stems {
		if before, _, found := strings.Cut(sentence, stem); found && utf8.RuneCountInString(before) <= head {
			return true
		}
	}
	return false
}

func firstRune(s string) rune { r, _ := utf8.DecodeRuneInString(s); return r }
func lastRune(s string) rune  { r, _ := utf8.DecodeLastRuneInString(s); return r }

func startsWord(s string, at int) bool {
	if at == 0 {
		return true
	}
	first, before := firstRune(s[at:]), lastRune(s[:at])
	return !unicode.IsLetter(before) || unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai) ||
		unicode.In(first, unicode.Arabic, unicode.Hebrew) // article and conjunctions are written onto the word
}
