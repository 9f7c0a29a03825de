/* The order of what a search finds: Sphinx calls Scorer.score for each result. Pages that say how to use polyop
   come before those about its inside, and those before the text of files. */
var Scorer = {
  score: ([document, , , , score]) => {
    if (/^docs\/(start|guides|hosts|tutorials|coming-from)\//.test(document)) return score + 20;
    if (/^docs\/reference\//.test(document)) return score + 10;
    if (/^docs\//.test(document)) return score;
    return score - 20;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
