import { isBuiltin } from 'node:module'
import type { Plugin } from 'rolldown'

const PREFIX = '\0builtin:'

/**
 * Modules that a start can do without, so that they are evaluated by the first call of one of their functions: `node:https` alone brings
 * TLS, `node:fs/promises` the reading of lines, 2 to 5 ms each. Their classes may be made with `new`, not extended.
 */
const late: ReadonlySet<string> = new Set([
  'node:dns/promises',
  'node:fs/promises',
  'node:https',
  'node:stream/promises',
  'node:worker_threads',
  'node:zlib',
])

/**
 * Takes Node's own modules from `process.getBuiltinModule`. An ESM import of one evaluates every lazy export it has: for
 * `node:http` that alone loads the WebSocket and fetch client, 25 ms and 13 MB of every start.
 */
export function builtins(): Plugin {
  return {
    name: 'builtins',
    resolveId: {
      order: 'pre',
      handler: (id) =>
        isBuiltin(id)
          ? { id: `${PREFIX}${id.startsWith('node:') ? id : `node:${id}`}`, moduleSideEffects: false }
          : null,
    },
    load(id) {
      if (!id.startsWith(PREFIX)) return null
      const name = id.slice(PREFIX.length)
      // What nobody imports is shaken off, so that its getter is never called.
      const module: Readonly<Record<string, unknown>> = { ...process.getBuiltinModule(name) }
      const names = Object.keys(module).filter((key) => /^[A-Za-z_$][\w$]*$/.test(key) && key !== 'default')
      const get = `process.getBuiltinModule(${JSON.stringify(name)})`
      if (late.has(name)) {
        return [
          `let loaded\nconst load = () => (loaded ??= ${get})`,
          `const builtin = /* @__PURE__ */ (() => ${get})()\nexport default builtin`,
          ...names.map(
            (key, index) =>
              (typeof module[key] === 'function'
                ? `function $${index}(...given) { return new.target ? new (load().${key})(...given) : load().${key}(...given) }`
                : `const $${index} = /* @__PURE__ */ (() => load().${key})()`) + `\nexport { $${index} as ${key} }`,
          ),
        ].join('\n')
      }
      return [
        `const builtin = ${get}`,
        'export default builtin',
        // The one of `node:fs` is a module of its own, `node:fs/promises`.
        ...names.map(
          (key, index) =>
            `const $${index} = /* @__PURE__ */ ${key === 'promises' ? 'new Proxy({}, { get: (_, name) => builtin.promises[name] })' : `(() => builtin.${key})()`}\nexport { $${index} as ${key} }`,
        ),
      ].join('\n')
    },
  }
}

const escape = (text: string): string =>
  Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')

/** A file with one character beyond ASCII is held with two bytes a character and decoded slowly. In strings an escape is the same. */
export function ascii(): Plugin {
  return {
    name: 'ascii',
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type === 'chunk') file.code = file.code.replaceAll(/\P{ASCII}/gu, (character) => escape(character))
      }
    },
  }
}

/**
 * The router is all that the daemon takes of h3, whose server toolkit reads the global `Response` when it is imported, which
 * loads the fetch client too. Here it reads it when it is used.
 */
export function lazyResponse(): Plugin {
  const id = `${PREFIX}srvx`
  return {
    name: 'lazy-response',
    resolveId: {
      order: 'pre',
      handler: (source) => (source === 'srvx' ? id : source === 'srvx/node' ? `${id}/node` : null),
    },
    transform: {
      filter: { id: /[\\/]h3[\\/]dist[\\/]response\.mjs$/ },
      handler: (code) => {
        // Two constants of its response module are made with the global `Headers`: here they are made when they are used.
        const [eager, lazy] = [
          /^const (\w+) = \/\* @__PURE__ \*\/ new FrozenHeaders\((.*)\);$/gm,
          /^var FrozenHeaders = (class extends Headers \{[\s\S]*?^\});$/m,
        ]
        const names = [...code.matchAll(eager)].map(([, name]) => name)
        if (names.length !== 2 || !lazy.test(code))
          throw new Error('h3 has changed: see whether its response module still makes headers when it is imported')
        const used = new RegExp(`(?<!const )\\b(${names.join('|')})\\b`, 'g')
        return code
          .replace(used, '$1()')
          .replace(eager, 'const $1 = () => new (frozenHeaders())($2);')
          .replace(lazy, 'const frozenHeaders = () => $1;')
      },
    },
    load(loaded) {
      if (loaded === id)
        return 'export const FastURL = URL\nexport class FastResponse { constructor(body, init) { return new Response(body, init) } }'
      if (loaded === `${id}/node`)
        return `const unused = () => { throw new Error("the daemon has its own server") }\nexport { unused as serve, unused as toNodeHandler }`
      return null
    },
  }
}
