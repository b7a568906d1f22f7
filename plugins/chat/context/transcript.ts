import type { Block, Message } from '../../sessions/contract.ts'

const RESULT_CHARS = 2000
const ARGS_CHARS = 500
const names = { user: 'User', assistant: 'Assistant', tool: 'Tools', system: 'Note' } as const

/** Messages as text, in pieces of at most `size` characters. A message longer than a piece is cut in its middle. */
export function toTranscript(messages: readonly Message[], size: number): readonly string[] {
  const pieces: string[] = []
  let piece = ''
  for (const { role, blocks, mark } of messages) {
    const text = shorten(
      `${names[role]}${mark === undefined ? '' : ` (${mark})`}: ${blocks.flatMap(toText).join('\n')}`,
      size - 2,
    )
    if (piece !== '' && piece.length + text.length + 2 > size) {
      pieces.push(piece)
      piece = ''
    }
    piece += `${piece === '' ? '' : '\n\n'}${text}`
  }
  return piece === '' ? pieces : [...pieces, piece]
}

function toText(block: Block): string | [] {
  switch (block.type) {
    case 'text':
      return block.text
    case 'reasoning':
      return []
    case 'image':
      return '[an image]'
    case 'call':
      return `[calls ${block.tool} with ${shorten(JSON.stringify(block.args ?? null), ARGS_CHARS)}]`
    case 'result':
      return `[${block.tool} ${block.failed ? 'failed' : 'answered'}: ${shorten(block.text, RESULT_CHARS)}]`
  }
}
function shorten(text: string, chars: number): string {
  if (text.length <= chars) return text
  const half = Math.max(1, Math.floor((chars - 5) / 2))
  return `${text.slice(0, half)} […] ${text.slice(-half)}`
}
