/** Marks, joiners and tags that nobody sees: text can be hidden in them. */
export const INVISIBLE = /[\p{Cf}\u{FE00}-\u{FE0F}\u{E0100}-\u{E01EF}\u115F\u1160\u3164\uFFA0]|(?![\n\t])\p{Cc}/gu
/** Signs of lists, quotations and Markdown before a word at the beginning of a line. */
const LEAD = String.raw`^[ \t>*_#\u2022\d.)-]{0,12}`
const line = (pattern: string): RegExp => new RegExp(pattern, 'im')
/** Of a mail, in languages of Europe. */
const HEADER =
  '[*_ \\t]{0,4}(?:from|to|sent|date|subject|b?cc|reply-to|von|an|betreff|gesendet|datum|de|à|envoyé|objet|para|enviado|' +
  'asunto|fecha|da|inviato|oggetto|data|van|aan|verzonden|onderwerp)[*_ \\t]{0,4}:[*_]{0,2}'
/**
 * From here on a message is not the words of its sender: an attached file, a forwarded mail, what somebody wrote. Each
 * takes a time that grows with the length of the message and no faster, as all patterns here.
 */
const FOREIGN_REST: readonly RegExp[] = [
  /^\[Attached file: /m,
  /^\[Forwarded message\]/m,
  /^\[(?:outside [0-9a-f]+:|content from outside)/m,
  /^[-_=*\t ]{2,}(?:original message|forwarded (?:message|by)|begin forwarded|quoted text|urspr\S+ nachricht)/im,
  /^begin forwarded message/im,
  /^on .{4,120} wrote:[ \t]*$/im,
  /^.{0,160}(?:schrieb|schreibt|écrit|escribió|ha scritto|escreveu|schreef|skrev).{0,160}:[ \t]*$/im,
  line(`^${HEADER} .+\\n${HEADER} `),
  line(`${LEAD}(?:user|assistant|system|human|ai|tool)[*_ \\t]{0,4}:`),
  line(String.raw`^[ \t]{0,12}#{1,6}[ \t*_]{0,4}(?:instructions?|response|input|user|assistant|system)\b`),
  /<\/?(?:user|system|assistant|tool|message|memory|instructions?)\b/i,
  // Of the templates of models.
  /<\|[a-z_]{1,30}\|>|<<\/?SYS>>|\[\/?INST\]/i,
]
/** A line that ends so introduces somebody else's text. */
const INTRODUCES =
  /\b(?:this|these|following|below|here(?:'s| is| are)|wrote|writes|says?|said|reads?|states?|replied|answered|asks?|asked|quote|e-?mail|mail|message|letter|text|page|article|post|review|transcript|document|notes?|log|output|contents?)\b[^\n:]{0,80}:[ \t]*(?=\n|$)/im
/** A request to work on a text: the text follows, with or without a word for it. */
const WORK_REQUESTED =
  /(?<![\p{L}\p{N}])(?:translat(?:e|ion)|summari[sz]e|proof-?read|re-?write|re-?phrase|paraphrase|correct|shorten|explain|analy[sz]e|classify|extract|convert|tl;?dr|übersetz(?:e|en)|korrigier(?:e|en)|erklär(?:e|en)|fasse?\b[^\n.!?]{0,80}\bzusammen)(?![\p{L}\p{N}])/iu
/** What stands in a paragraph of its own after a question or a colon is what was asked about. */
const ASKED_ABOUT = /[?:][ \t]*\n[ \t]*\n/
/** The same within a line; the rest of the paragraph is not the sender's. */
const REPORTED =
  /\b(?:wrote|writes|says?|said|reads?|states?|replied|answered|asks?|asked|told (?:me|us|you)|according to [^,:\n]{1,60})(?: (?:to|me|us|that|you))*\s*[:,]\s*\S[^]*?(?=\n\s*\n|$)/gi
/** One that is not closed goes on to the end, but in marks that stand for inches as well. */
const QUOTED =
  /"[^"]*"|“[^”]*(?:”|(?![^]))|„[^“”]*(?:[“”]|(?![^]))|»[^«»]*«|«[^»]*(?:»|(?![^]))|```[^]*?(?:```|(?![^]))|^[^\S\n]*[>|].*$/gm
const MAX_QUOTED_WORDS = 3

/**
 * What somebody says in a message in their own words: without quotations, forwarded mails, attached files and anything
 * that imitates a conversation, and without invisible characters. Decision: what is in doubt is left out, because a
 * fact that is missed can be told again, while an instruction that is remembered works in every later conversation.
 */
export function ownWords(message: string): string {
  let text = message.replaceAll(/\r\n?/g, '\n').replaceAll(INVISIBLE, '').normalize('NFKC')
  for (const pattern of FOREIGN_REST) {
    const at = text.search(pattern)
    if (at >= 0) text = text.slice(0, at)
  }
  text = text.replaceAll(QUOTED, (quoted) =>
    /^["“„«»].*["“”«»]$/.test(quoted) && quoted.split(/\s+/).length <= MAX_QUOTED_WORDS ? quoted.slice(1, -1) : ' ',
  )
  for (const pattern of [INTRODUCES, WORK_REQUESTED, ASKED_ABOUT]) {
    const at = text.search(pattern)
    if (at >= 0) text = text.slice(0, at)
  }
  return text.replaceAll(REPORTED, ' ').trim()
}
