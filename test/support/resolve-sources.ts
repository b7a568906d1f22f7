import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

// Vitest sends a message to the process that starts all others for every import, also of a module that was loaded
// before: which files to watch. Where nothing is watched, imports of the sources are resolved without it.
const repository = new URL('../..', import.meta.url).href
const known = new Map<string, string>()

function find(specifier: string, parent: string | undefined): string | undefined {
  if (specifier.startsWith('node:')) return specifier
  if (specifier.startsWith('svc/')) return known.get(specifier)
  if (!/^\.\.?\/.*\.ts$/.test(specifier) || !parent?.startsWith(repository) || parent.includes('/node_modules/'))
    return undefined
  const { href } = new URL(specifier, parent)
  if (!known.has(href) && existsSync(fileURLToPath(href))) known.set(href, href)
  return known.get(href)
}

// The hook that was registered last is asked first: this one, then that of Vitest.
if (process.env['VITEST_MODE'] === 'RUN')
  registerHooks({
    resolve(specifier, context, next) {
      const url = find(specifier, context.parentURL)
      if (url !== undefined) return { url, shortCircuit: true }
      const found = next(specifier, context)
      // These are the same wherever they are imported: see `public-modules.ts`.
      if (specifier.startsWith('svc/')) known.set(specifier, found.url)
      return found
    },
  })
