import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineCommand } from './command.ts'
import { note } from './output.ts'
import { startArgs, toFlags } from './start.ts'
import { locateHome } from './home-location.ts'

export default defineCommand({
  description: 'Start from source, reload a plugin when its folder changes, and check every answer against its schema.',
  args: startArgs,
  examples: [
    ['svc dev', 'edit a plugin and watch it reload'],
    ['svc dev --home ./try --port 0', 'beside a daemon that runs'],
  ],
  async run(args) {
    becomeSource()
    const { serve } = await import('./serve.ts')
    note('plugins reload as they are edited; a change in core/ needs a new start')
    return await serve({
      location: locateHome(args),
      flags: { ...toFlags(args), 'plugins.watch': true, development: true },
      json: args.json === true,
    })
  },
})

/** The built command goes on as the one in the sources beside it, when there are any. */
function becomeSource(): void {
  const here = dirname(fileURLToPath(import.meta.url))
  const folder = [here, dirname(here)].find((one) => existsSync(join(one, 'build.json')))
  if (folder === undefined) return
  const source = join(dirname(folder), 'core/cli/main.ts')
  // Node does not run TypeScript below node_modules: an installed svc reloads the plugins outside it.
  if (!existsSync(source) || source.includes('/node_modules/') || typeof process.execve !== 'function') return
  process.execve(
    process.execPath,
    [
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      '--conditions=svc-source',
      source,
      ...process.argv.slice(2),
    ],
    process.env,
  )
}
