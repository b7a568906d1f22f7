/** Scripts that are written without blanks between words. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u
/** Whether it has no words that blanks set apart. */
export const isUnspaced = (text: string): boolean => UNSPACED.test(text)
const WORD = /[\p{L}\p{M}\p{N}]+/gu
const GENITIVE = /['’]s(?![\p{L}\p{N}])/gu
const MAX_WORD_CHARS = 64

/** Words that say nothing of what a text is about, in English and German. */
const STOP_WORDS = new Set(
  (
    'a about an and any are as at be been but by can could did do does for from had has have he her him his how i if in ' +
    'into is it its just me my no not of on or our she should so some tell than that the their them then there these ' +
    'they this to us was we were what when where which who whom whose why will with would you your ' +
    'aber als am an auf aus bei bin bist da das dass dem den der des die du ein eine einem einen einer eines er es für ' +
    'hat habe haben ich ihm ihn ihr ihre im in ist ja kann mein meine mich mir mit nach nicht noch nur oder sein seine ' +
    'sich sie sind so und uns unser vom von vor war was wann warum wem wen wer wie wir wird wo zu zum zur'
  ).split(' '),
)

/** The words of a text as they are compared: lower case, without accents and common English endings. */
export function wordsOf(text: string): readonly string[] {
  const words: string[] = []
  // Accents are taken off by decomposition, so that "café" is found by "cafe".
  for (const [word] of text.normalize('NFKC').toLowerCase().replaceAll(GENITIVE, '').matchAll(WORD)) {
    if (UNSPACED.test(word)) words.push(...pairsOf(word))
    else if (!STOP_WORDS.has(word))
      words.push(stem(word.normalize('NFD').replaceAll(/\p{M}/gu, '')).slice(0, MAX_WORD_CHARS))
  }
  return words
}

/** Without plural, tense and adverb endings: cheap, the same for question and memory, and wrong in both alike. */
export function stem(word: string): string {
  if (word.length < 4 || /\d/.test(word)) return word
  const bare = word
    .replace(/ies$/, 'y')
    .replace(/(ss|us|is)$|s$/, '$1')
    .replace(/(?<=[a-z]{3})(?:ing|edly|ed|ly)$/, '')
  // "likes" and "like", "liked" and "liking".
  return bare.length > 3 ? bare.replace(/e$/, '') : bare
}

/** Characters side by side, and the single one. */
function pairsOf(word: string): readonly string[] {
  const letters = [...word]
  return letters.length === 1 ? letters : letters.slice(1).map((letter, at) => `${letters[at] ?? ''}${letter}`)
}
