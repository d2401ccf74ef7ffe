package text

import "strings"

// stopwords are the words too common to say what a text is about. They are
// indexed, but asked for only where a query holds nothing else.
var stopwords = wordSet(`
a about above after again against all also am an and any are aren as at be because been before being below between both but by can cannot could couldn
d did didn do does doesn doing don down during each few for from further get got had hadn has hasn have haven having he her here hers herself him
himself his how i if in into is isn it its itself just kind like likely ll m many may me might more most much must mustn my myself no nor not now o of
off on once only or other ought our ours ourselves out over own re s same shan she should shouldn so some sort such t than that the their theirs them
themselves then there these they this those through to too type under until up ve very was wasn we were weren what when where which while who whom why
will with won would wouldn y you your yours yourself yourselves
`)

// bases maps an irregular form to the form that it is indexed under, so that
// "went" finds "go". Regular forms are the stemmer's work.
var bases = baseForms(`
be am is are was were been being
have has had having
do does did done doing
go goes went gone going
get got gotten getting
make made making
take took taken taking
come came coming
see saw seen seeing
know knew known
give gave given giving
find found
think thought
tell told
become became becoming
leave left leaving
feel felt
bring brought
begin began begun beginning
keep kept
hold held
write wrote written writing
stand stood
hear heard
let letting
mean meant
meet met meeting
run ran running
pay paid
sit sat sitting
speak spoke spoken
lead led
grow grew grown
lose lost losing
fall fell fallen
send sent
build built
understand understood
draw drew drawn
break broke broken
spend spent
rise rose risen
drive drove driven driving
buy bought
wear wore worn
choose chose chosen choosing
eat ate eaten
sing sang sung
teach taught teacher
win won winning winner
catch caught
sell sold
fight fought
throw threw thrown
sleep slept asleep
swim swam swum swimming
ride rode ridden riding
fly flew flown flight
forget forgot forgotten
hide hid hidden
bite bit bitten
blow blew blown
dig dug
drink drank drunk
feed fed
forgive forgave
freeze froze frozen
hang hung
hurt hurting
lay laid
lend lent
lie lay lain
light lit
ring rang rung
seek sought
shake shook shaken
shine shone
shoot shot
shut shutting
sink sank sunk
slide slid
steal stole stolen
stick stuck
strike struck
swear swore sworn
sweep swept
tear tore torn
wake woke woken
weep wept
wind wound
man men
woman women
foot feet
tooth teeth
mouse mice
child children
`)

// wordSet returns the words of a list, separated by white space.
func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// baseForms reads lines of a base form and its irregular forms. A form that is
// itself a base of another line stays what it is.
func baseForms(list string) map[string]string {
	base := map[string]string{}
	lines := strings.Split(strings.TrimSpace(list), "\n")
	for _, line := range lines {
		forms := strings.Fields(line)
		for _, f := range forms[1:] {
			base[f] = forms[0]
		}
	}
	for _, line := range lines {
		first, _, _ := strings.Cut(line, " ")
		delete(base, first)
	}
	return base
}

// IsStopword reports whether a word, in lower case, is too common to search for.
func IsStopword(word string) bool { return stopwords[word] }
