import type { Plugin } from 'rolldown'

const FACADE = /^export \{ ([^}]*) \} from "\.\/([\w.-]+\.js)";\s*$/

/**
 * A module that is imported later but lies in a file with others gets a file of its own that only hands it on, and each file costs a
 * start a millisecond: here whoever imports it takes it from where it lies.
 */
export function facades(): Plugin {
  return {
    name: 'facades',
    generateBundle(_, bundle) {
      const chunks = Object.values(bundle).filter((file) => file.type === 'chunk')
      for (const chunk of chunks) {
        const [, names, from] = (!chunk.isEntry && FACADE.exec(chunk.code.trim())) || []
        if (names === undefined || from === undefined) continue
        const members = names
          .split(', ')
          .map((name) => name.split(' as '))
          .map(([inner, outer = inner]) => `${JSON.stringify(outer)}: all.${inner}`)
        const name = chunk.fileName.split('/').at(-1) ?? ''
        for (const other of chunks) {
          other.code = other.code.replaceAll(
            new RegExp(`import\\("(\\.[\\w./-]*/)${name.replaceAll('.', '\\.')}"\\)`, 'g'),
            (_found, folder: string) => `import("${folder}${from}").then((all) => ({ ${members.join(', ')} }))`,
          )
        }
      }
    },
  }
}
