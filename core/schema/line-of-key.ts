/** The line of a key, such as `description` or `tools.provided.0.name`, in a text of YAML or TOML; the first line is 1. */
export function lineOfKey(text: string, path: string, firstLine = 1): number | undefined {
  const lines = text.split('\n')
  const names = path.split('.').filter((part) => !/^\d+$/.test(part))
  const holds = (name: string) => new RegExp(`^[\\s\\[-]*(?:[\\w."-]+\\.)?"?${RegExp.escape(name)}"?\\s*[:=\\].]`)
  let at = -1
  for (const name of names) {
    const next = lines.findIndex((line, index) => index >= Math.max(at, 0) && holds(name).test(line))
    if (next >= 0) at = next
  }
  return at < 0 ? undefined : at + firstLine
}
