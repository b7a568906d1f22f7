/**
 * The line of a key, such as `description` or `tools.provided.0.name`, in a text of YAML or TOML; the first line is 1.
 * That of the table where the key is not there.
 */
export function lineOfKey(text: string, path: string, firstLine = 1): number | undefined {
  const lines = text.split('\n')
  const holds = (name: string) => new RegExp(`^[\\s\\[-]*(?:[\\w."-]+\\.)?"?${RegExp.escape(name)}"?\\s*[:=\\].]`)
  let at = -1
  let end = lines.length
  let before = ''
  for (const part of path.split('.')) {
    if (/^\d+$/.test(part)) {
      const starts = headersLike(lines, at)
      at = starts[Number(part)] ?? at
      end = starts[Number(part) + 1] ?? end
      continue
    }
    // `name.name = 1` has both; the header `[name]` is no key of itself.
    const isHere =
      at >= 0 && new RegExp(`${RegExp.escape(before)}"?\\s*\\.\\s*"?${RegExp.escape(part)}\\b`).test(lines[at] ?? '')
    const next = isHere ? at : lines.findIndex((line, index) => index > at && index < end && holds(part).test(line))
    if (next >= 0) at = next
    before = part
  }
  return at < 0 ? undefined : at + firstLine
}

/** Where the tables of a TOML list of tables begin, from its first one on; none where the list is no such. */
function headersLike(lines: readonly string[], first: number): readonly number[] {
  const header = lines[first]?.trim() ?? ''
  if (!header.startsWith('[[')) return []
  return lines.flatMap((line, at) => (at >= first && line.trim() === header ? [at] : []))
}
