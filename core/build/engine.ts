import type { Plugin } from 'rolldown'

const HERE = '\0engine-here'

/**
 * Takes the JavaScript of better-sqlite3, fifteen files, into the daemon's own: each costs a start a third of a millisecond. The native
 * part stays in its package, and is looked for there by the package's own rules.
 */
export function engine(): Plugin {
  return {
    name: 'engine',
    resolveId: { order: 'pre', handler: (source) => (source === HERE ? HERE : null) },
    load: (id) =>
      id === HERE
        ? 'import { createRequire } from "node:module"\nexport const load = createRequire(import.meta.url)\nexport const lib = () => process.getBuiltinModule("node:path").dirname(load.resolve("better-sqlite3"))'
        : null,
    transform: {
      filter: { id: /[\\/]better-sqlite3[\\/]lib[\\/].*\.js$/ },
      handler(code, id) {
        const plain = code.replaceAll(/require\('(fs|path|util)'\)/g, "process.getBuiltinModule('node:$1')")
        if (!/[\\/]binding\.js$/.test(id)) return plain
        const changed = plain
          .replace("'use strict';", `'use strict';\nconst { load, lib } = require(${JSON.stringify(HERE)});`)
          .replaceAll('__dirname', 'lib()')
          .replaceAll(/\brequire\((filename|getPrebuildPath\(\) \|\| filename)\)/g, 'load($1)')
          .replace(/\brequire;/, 'load;')
          .replace(/if \(require\.main === module\) \{[^}]*\}/, '')
        if (changed.includes('__dirname') || changed.match(/\brequire\b/g)?.length !== 1)
          throw new Error('better-sqlite3 has changed: see how it finds its native part now')
        return changed
      },
    },
  }
}
