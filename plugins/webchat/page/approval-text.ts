export const riskDescriptions: Readonly<Record<string, string>> = {
  low: 'It only reads, or changes little.',
  medium: 'It reaches outside its workspace.',
  high: 'It can change things.',
  critical: 'What it does may not be possible to undo.',
}

/** Exactly what the tool call will do, with nothing hidden. */
export function describePayload(payload: unknown): string {
  return describeCommand(payload) ?? describeArguments(payload)
}

/** A command followed by its other arguments, one on each line. `undefined` if there is no command. */
function describeCommand(payload: unknown): string | undefined {
  if (typeof payload !== 'object' || payload === null || !('command' in payload) || typeof payload.command !== 'string')
    return undefined
  const others = Object.entries(payload)
    .filter(([name]) => name !== 'command')
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  return [payload.command, ...others].map(escapeHidden).join('\n')
}

/** A single text argument as it is; everything else as JSON. */
function describeArguments(payload: unknown): string {
  if (typeof payload === 'object' && payload !== null && !Array.isArray(payload)) {
    const fields = Object.entries(payload)
    const [only] = fields
    if (only && fields.length === 1 && typeof only[1] === 'string') return escapeHidden(`${only[0]}: ${only[1]}`)
  }
  return escapeHidden(JSON.stringify(payload, undefined, 2) ?? '')
}

/** Escapes characters that are invisible or change the direction of text. */
export function escapeHidden(text: string): string {
  return text.replaceAll(
    /(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu,
    (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  )
}
