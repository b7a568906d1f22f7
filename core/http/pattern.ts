/** A route path, taken apart: literal text, `:name` (one segment) or `**:name` (the rest). */
export interface Pattern {
  readonly path: string
  readonly segments: readonly Segment[]
  /** Equal for two paths that differ in parameter names only. */
  readonly shape: string
}
type Segment =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'one' | 'rest'; readonly name: string }

const PARAMETER = /^(\*\*)?:([A-Za-z_]\w*)$/
const PLAIN = /^[\w.~@!$&'+,;=-]+$/

export function compilePattern(path: string): Pattern {
  if (!path.startsWith('/')) throw new Error(`route path "${path}" must begin with a slash`)
  const parts = path === '/' ? [] : path.slice(1).split('/')
  const names = new Set<string>()
  const segments = parts.map((part, at): Segment => {
    // Hundreds of routes are compiled at every start.
    const match = part.includes(':') ? PARAMETER.exec(part) : null
    if (!match) {
      if (!PLAIN.test(part)) throw new Error(`route path "${path}": "${part}" is neither plain text nor a parameter`)
      return { kind: 'text', text: part }
    }
    const name = match[2] ?? ''
    if (names.has(name)) throw new Error(`route path "${path}" names :${name} twice`)
    names.add(name)
    if (match[1] === undefined) return { kind: 'one', name }
    if (at !== parts.length - 1) throw new Error(`route path "${path}": **:${name} must be the last part`)
    return { kind: 'rest', name }
  })
  const shape = `/${segments.map(shapeOf).join('/')}`
  return { path, segments, shape }
}

/** The raw, still encoded parameters when the path fits. */
function shapeOf(segment: Segment): string {
  if (segment.kind === 'text') return segment.text
  return segment.kind === 'one' ? ':' : '**'
}

export function matchPattern(pattern: Pattern, path: string): Record<string, string> | undefined {
  const parts = path === '/' ? [] : (path.endsWith('/') ? path.slice(1, -1) : path.slice(1)).split('/')
  const params: Record<string, string> = {}
  for (const [at, segment] of pattern.segments.entries()) {
    const part = parts[at]
    if (part === undefined || part === '') return undefined
    if (segment.kind === 'rest') {
      params[segment.name] = parts.slice(at).join('/')
      return params
    }
    if (segment.kind === 'text') {
      if (segment.text !== part) return undefined
    } else params[segment.name] = part
  }
  return parts.length === pattern.segments.length ? params : undefined
}
