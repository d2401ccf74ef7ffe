// Package lsa makes vectors of texts without any model from outside: latent
// semantic analysis of what the agent itself has heard and said. Words that occur
// among the same other words, in one passage or the few around it, come to lie near
// each other, and a text lies where its words do.
//
// It needs a few hundred passages before it knows anything, learns in seconds from
// tens of thousands, and never sends anything anywhere. A Model knows the words of
// its corpus: whoever erases a passage has to drop the models that were trained on it.
//
// The method is that of Deerwester, Dumais, Furnas, Landauer and Harshman, "Indexing
// by latent semantic analysis", JASIS 41 (1990), with a randomised decomposition.
package lsa
