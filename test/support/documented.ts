import { parseAst } from 'rolldown/parseAst'

type Statement = ReturnType<typeof parseAst>['body'][number]
type Declaration = NonNullable<Extract<Statement, { type: 'ExportNamedDeclaration' }>['declaration']>

/** A field or method of a type. */
export interface DocumentedMember {
  readonly name: string
  readonly signature: string
  readonly doc: string
}
/** A declaration that a file exports. */
export interface Documented {
  readonly name: string
  readonly kind: 'function' | 'class' | 'interface' | 'type' | 'constant'
  /** The declaration without comments and members, in one line. */
  readonly signature: string
  /** The text of its comment; empty when it has none. */
  readonly doc: string
  readonly members: readonly DocumentedMember[]
}
/** A name that a file takes from another file. */
export interface ReExport {
  readonly name: string
  readonly original: string
  readonly from: string
}

interface Span {
  readonly start: number
  readonly end: number
}

/** What a file exports, by name. */
export interface FileExports {
  readonly declared: ReadonlyMap<string, Documented>
  readonly taken: ReadonlyMap<string, ReExport>
}

/** `text` is TypeScript, such as that of a declaration file. */
export function readExports(text: string): FileExports {
  const declared = new Map<string, Documented>()
  const taken = new Map<string, ReExport>()
  let previousEnd = 0
  for (const statement of parseAst(text, { lang: 'ts' }, 'declarations.ts').body) {
    if (statement.type === 'ExportNamedDeclaration') {
      for (const found of readReExports(statement)) taken.set(found.name, found)
      const { declaration } = statement
      const doc = docBetween(text, previousEnd, statement.start)
      const found = declaration ? readDeclaration(text, declaration, doc) : []
      const fresh = found.filter(({ name }) => !declared.has(name))
      for (const one of fresh) declared.set(one.name, one)
    }
    previousEnd = statement.end
  }
  return { declared, taken }
}

function readReExports(statement: Extract<Statement, { type: 'ExportNamedDeclaration' }>): readonly ReExport[] {
  const from = statement.source?.value
  if (from === undefined) return []
  return statement.specifiers.map(({ local, exported }) => ({ name: nameOf(exported), original: nameOf(local), from }))
}

function readDeclaration(text: string, declaration: Declaration, doc: string): readonly Documented[] {
  const upTo = (end: number): string => oneLine(text.slice(declaration.start, end))
  switch (declaration.type) {
    case 'VariableDeclaration':
      return declaration.declarations.map(({ id }) => {
        const type = 'typeAnnotation' in id ? id.typeAnnotation : undefined
        const name = id.type === 'Identifier' ? id.name : ''
        const signature = `${name}${type ? oneLine(text.slice(type.start, type.end)) : ''}`
        const kind = type?.typeAnnotation.type === 'TSFunctionType' ? 'function' : 'constant'
        return { name, kind, signature, doc, members: [] }
      })
    case 'FunctionDeclaration':
    case 'TSDeclareFunction': {
      const end = declaration.body?.start ?? declaration.end
      const name = declaration.id?.name ?? ''
      return [{ name, kind: 'function', signature: upTo(end).replace(/^function /, ''), doc, members: [] }]
    }
    case 'ClassDeclaration': {
      const members = readMembers(text, declaration.body, declaration.body.body)
      return [
        { name: declaration.id?.name ?? '', kind: 'class', signature: upTo(declaration.body.start), doc, members },
      ]
    }
    case 'TSInterfaceDeclaration': {
      const members = readMembers(text, declaration.body, declaration.body.body)
      return [{ name: declaration.id.name, kind: 'interface', signature: upTo(declaration.body.start), doc, members }]
    }
    case 'TSTypeAliasDeclaration': {
      const type = declaration.typeAnnotation
      const parts = type.type === 'TSIntersectionType' ? type.types : [type]
      const members = parts.flatMap((part) =>
        part.type === 'TSTypeLiteral' ? readMembers(text, part, part.members) : [],
      )
      return [{ name: declaration.id.name, kind: 'type', signature: upTo(declaration.end), doc, members }]
    }
    default:
      return []
  }
}

type Key = { readonly type: string; readonly name?: unknown; readonly value?: unknown }
type Member = Span & { readonly type: string; readonly key?: Key; readonly kind?: string }

/** Public members; the second of two signatures of one name is left out. Phantom fields begin with `~`. */
function readMembers(text: string, body: Span, members: readonly Member[]): readonly DocumentedMember[] {
  const found = new Map<string, DocumentedMember>()
  let previousEnd = body.start
  for (const member of members) {
    const doc = docBetween(text, previousEnd, member.start)
    previousEnd = member.end
    const name = memberName(member)
    if (name === '' || name === 'constructor' || name.startsWith('~') || found.has(name)) continue
    const signature = oneLine(text.slice(member.start, member.end)).replace(/^readonly /, '')
    found.set(name, { name, signature, doc })
  }
  return [...found.values()]
}

function memberName({ key, type }: Member): string {
  if (type === 'TSCallSignatureDeclaration') return 'call'
  if (key === undefined || key.type === 'PrivateIdentifier') return ''
  return String(key.name ?? key.value ?? '')
}

const nameOf = (name: { readonly type: string; readonly name?: string; readonly value?: string }): string =>
  name.name ?? name.value ?? ''

/** The last doc comment in a stretch of text, as prose: lines are joined but for those of a list. */
function docBetween(text: string, start: number, end: number): string {
  const comments = [...text.slice(start, end).matchAll(/\/\*\*([\s\S]*?)\*\//g)]
  const lines = (comments.at(-1)?.[1] ?? '').split('\n').map((line) => line.replace(/^\s*\* ?/, '').trim())
  return lines
    .join('\n')
    .trim()
    .replaceAll(/([^\n])\n(?!\n|- |```)/g, '$1 ')
}

/** Code without comments, in one line. */
export function oneLine(code: string): string {
  return code
    .replaceAll(/\/\*\*[\s\S]*?\*\//g, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/([([]) /g, '$1')
    .replaceAll(/,? ([)\]])/g, '$1')
    .replaceAll(/[,;] }/g, ' }')
    .replace(/^(?:export )?(?:declare )?(?:const )?/, '')
    .replace(/[;,]?\s*$/, '')
}
