/**
 * The pairs of one line of text: `city=Oslo note="two words"`. A pair without `=` is left out.
 */
export function parseAssignments(text: string): Readonly<Record<string, string>> {
  const pairs = text.matchAll(/([^\s=]{1,64})=(?:"([^"]*)"|(\S*))/g)
  return Object.fromEntries([...pairs].map(([, name = '', quoted, plain]) => [name, quoted ?? plain ?? '']))
}
