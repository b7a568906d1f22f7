import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expectText, measure } from './commands.ts'
import type { Daemon } from './commands.ts'

interface Place {
  readonly home: string
  /** Runs `svc` with these words and returns what it printed. */
  readonly svc: (...words: string[]) => Promise<string>
}

/** A plugin from nothing, with a route, a tool, a page and a key of the configuration. */
export async function writePlugin({ url, prints }: Daemon, { home, svc }: Place): Promise<void> {
  const folder = join(home, 'plugins/weather')
  const ask = async (path: string): Promise<string> => (await fetch(url + path)).text()
  await measure('plugin', {
    'svc plugin new, its route answers': async () => {
      const loaded = prints(/plugin "weather" loaded/)
      await svc('plugin', 'new', 'weather')
      await loaded
      expectText(await ask('/api/weather/Ada'), 'Hello, Ada!')
    },
    'edit, see it live': async () => {
      const reloaded = prints(/plugin "weather" reloaded/)
      await edit(join(folder, 'index.ts'), "'Hello'", "'Good day'")
      await reloaded
      expectText(await ask('/api/weather/Ada'), 'Good day, Ada!')
    },
    'an agent uses its tool': async () =>
      expectText(await svc('chat', '--message', 'use weather {"who":"Ada"}'), 'Good day, Ada!'),
    'add a page': async () => {
      await writeFile(join(folder, 'weather.html'), '<!doctype html>\n<title>Weather</title>\n<h1>Sunny</h1>\n')
      const reloaded = prints(/plugin "weather" reloaded/)
      const page = "pages: [{ path: 'now', title: 'Weather', file: 'weather.html' }],"
      await edit(join(folder, 'index.ts'), '  setup(', `  ${page}\n  setup(`)
      await reloaded
      expectText(await ask('/pages/weather/now/weather.html'), 'Sunny')
    },
    'change its key of the configuration': async () => {
      await svc('config', 'set', 'plugins.weather.greeting', 'Servus')
      await svc('config', 'reload')
      expectText(await ask('/api/weather/Ada'), 'Servus, Ada!')
    },
    'run its tests': () => svc('plugin', 'test', 'weather'),
  })
}

async function edit(file: string, from: string, to: string): Promise<void> {
  const text = await readFile(file, 'utf8')
  expectText(text, from)
  await writeFile(file, text.replace(from, to))
}
