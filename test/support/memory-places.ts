import { parseAst } from 'rolldown/parseAst'

/** Something in memory that outlives a call: the name of a field, or of a variable. */
export interface MemoryPlace {
  readonly name: string
  readonly line: number
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

const COLLECTION = /^(?:Map|Set|WeakMap|WeakSet|KeptRows)$|Cache$/
const COLLECTION_TYPE = /^(?:Map|Set|WeakMap|WeakSet|KeptRows)</
const FUNCTION = /^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/
/** Types of what cannot hold a row: numbers, flags, functions, timers, signals, promises of nothing. */
const HOLDS_NOTHING =
  /^(?:\s|\||number|boolean|bigint|undefined|null|true|false|(?:NodeJS\.)?(?:Timeout|Immediate)|AbortController|Promise<(?:void|unknown|boolean|number)>|PromiseWithResolvers<void>|\(*\([^()]*\) => (?:void|unknown|number|boolean)(?: \| Promise<void>)?\)*(?:\[\])?)+$/
const BEGINS_WITH_NOTHING =
  /^(?:-?[\d_.]+n?|true|false|-?Infinity|''|new AbortController|performance\.now|Promise\.resolve|Promise\.withResolvers<void>|(?:async )?\(.*=>)/s

/**
 * The collections and the mutable fields and variables of a file that may hold rows, read from its syntax: at the level
 * of the module, of a class, of the function `setup` of a plugin, and of a function for what it returns. Tables that
 * nobody writes to are left out.
 */
export function memoryPlaces(path: string, text: string): readonly MemoryPlace[] {
  const body = parseAst(text, { lang: 'ts' }, path).body as unknown as readonly Node[]
  const found: MemoryPlace[] = []
  const source = (node: Node): string => text.slice(node.start, node.end)
  const add = (node: Node, name: string): void => {
    found.push({ name, line: text.slice(0, node.start).split('\n').length })
  }
  const mayHoldRows = (isMutable: boolean, type: unknown, init: unknown): boolean => {
    const typeText = isNode(type) ? source(type).replace(/^:\s*/, '') : ''
    const value = unwrapped(init)
    if ((value && isCollection(value)) || COLLECTION_TYPE.test(typeText)) return true
    if (!isMutable) return false
    if (typeText !== '') return !HOLDS_NOTHING.test(typeText)
    return !value || !BEGINS_WITH_NOTHING.test(source(value))
  }
  /** `writers`: the code that outlives the call and may write to them. */
  const variables = (statement: Node, writers: string): void => {
    const { declarations, kind } = statement
    const others = writers.replace(source(statement), '')
    for (const declared of declarations as readonly Node[]) {
      const { id, init } = declared as unknown as { readonly id: Node; readonly init: unknown }
      const name = String(id['name'])
      const isWritten = new RegExp(
        `(?<![.\\w#])${name}(?:\\.(?:set|add|delete|clear|push|splice|unshift)\\(|(?:\\[[^\\]]*\\])? [?|&+]*= )`,
      )
      if (id.type === 'Identifier' && mayHoldRows(kind === 'let', id['typeAnnotation'], init) && isWritten.test(others))
        add(declared, name)
    }
  }
  const fields = (members: readonly Node[]): void => {
    for (const member of members)
      if (member.type === 'PropertyDefinition')
        if (mayHoldRows(member['readonly'] !== true, member['typeAnnotation'], member['value']))
          add(member, source(member['key'] as Node))
  }
  const locals = (node: Node): void => {
    const block = node['body'] as Node | null
    if (block?.type !== 'BlockStatement') return
    const statements = block['body'] as readonly Node[]
    const returned = statements.findLast(({ type }) => type === 'ReturnStatement')?.['argument']
    const isSetup = /\bsetup$/.test(text.slice(0, node.start).trimEnd())
    const isFactory = isNode(returned) && (FUNCTION.test(returned.type) || returned.type === 'ObjectExpression')
    if (!isSetup && !isFactory) return
    const writers = innerFunctions(statements).map(source).join('\n')
    for (const statement of statements) if (statement.type === 'VariableDeclaration') variables(statement, writers)
  }
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(visit)
    if (!isNode(node)) return
    if (node.type === 'ClassBody') fields(node['body'] as readonly Node[])
    if (FUNCTION.test(node.type)) locals(node)
    // What a method has ends with the call.
    const { body: inner } = (node.type === 'MethodDefinition' ? node['value'] : {}) as { readonly body?: unknown }
    Object.values(isNode(inner) ? inner : node).forEach(visit)
  }
  for (const statement of body) {
    const declaration = statement.type === 'ExportNamedDeclaration' ? statement['declaration'] : statement
    if (isNode(declaration) && declaration.type === 'VariableDeclaration') variables(declaration, text)
  }
  visit(body)
  return found
}

function innerFunctions(node: unknown): readonly Node[] {
  if (Array.isArray(node)) return node.flatMap(innerFunctions)
  if (!isNode(node)) return []
  return FUNCTION.test(node.type) ? [node] : Object.values(node).flatMap(innerFunctions)
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Node>).type === 'string'
}

function unwrapped(node: unknown): Node | undefined {
  if (!isNode(node)) return undefined
  return /^TS(?:As|Satisfies|NonNull)Expression$/.test(node.type) ? unwrapped(node['expression']) : node
}

function isCollection(node: Node): boolean {
  if (node.type === 'NewExpression') return COLLECTION.test(String((node['callee'] as Node)['name']))
  if (node.type === 'ArrayExpression') return (node['elements'] as readonly unknown[]).length === 0
  return node.type === 'ObjectExpression' && (node['properties'] as readonly unknown[]).length === 0
}
