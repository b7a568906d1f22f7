import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-nearest-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

/** A plugin that listens to a hook of this id. */
async function listening(name: string, id: string): Promise<string> {
  const folder = join(home, name)
  await mkdir(folder)
  await writeFile(
    join(folder, 'index.ts'),
    `import * as v from 'valibot'
import { definePlugin, notify } from 'svc/sdk'
export default definePlugin({ name: '${name}', version: '1.0.0', config: v.object({}),
  setup({ hooks }) { hooks.on(notify('${id}'), () => {}); return {} } })`,
  )
  return folder
}

describe('a hook nobody has', () => {
  it('stops the plugin that listens to it, and the nearest one is named', async () => {
    await using host = await startHost({
      memory: true,
      plugins: ['audit', 'agents', await listening('one', 'agents:spwaned'), await listening('two', 'daemon:listenin')],
    })
    const statusOf = (name: string) => host.app.daemon.plugins().find((plugin) => plugin.name === name)
    expect(statusOf('one')).toMatchObject({
      state: 'failed',
      error: expect.stringContaining(
        '"agents:spwaned", and no plugin has a hook of this id; did you mean "agents:spawned"?',
      ),
    })
    expect(statusOf('two')?.error).toContain('did you mean "daemon:listening"?')
  })

  it('of a plugin that is not here is a warning, because it may come', async () => {
    await using host = await startHost({
      memory: true,
      plugins: ['audit', 'agents', await listening('one', 'agnets:spawned'), await listening('two', 'agents:spawned')],
    })
    await host.plugin('one', 'loaded')
    const told = host.log.filter((line) => line.includes('no plugin has a hook of this id'))
    expect(told).toEqual([expect.stringContaining('did you mean "agents:spawned"?')])
  })

  it('is every hook of a contract that its plugin does not declare', async () => {
    await using host = await startHost({ memory: true, listen: false })
    const declared = host.app.host.known().flatMap(({ hooks = [] }) => hooks.map(({ id }: { id: string }) => id))
    const plugins = join(import.meta.dirname, '../../../plugins')
    const exported: string[] = []
    for (const name of await readdir(plugins)) {
      const contract: Record<string, unknown> = await import(join(plugins, name, 'contract.ts')).catch(() => ({}))
      for (const value of Object.values(contract))
        if (typeof value === 'object' && value !== null && 'kind' in value && 'id' in value)
          exported.push(String(value.id))
    }
    expect(exported.length).toBeGreaterThan(20)
    expect(exported.toSorted()).toEqual(declared.toSorted())
    expect(host.log.filter((line) => line.includes('no plugin has a hook'))).toEqual([])
  })
})

it('plugins and providers that are not there are answered with the nearest', async () => {
  await using host = await startHost({ memory: true })
  for (const [method, path, near] of [
    ['GET', '/api/plugins/agnets', 'agents'],
    ['POST', '/api/plugins/agnets/reload', 'agents'],
    ['GET', '/api/providers/opnai', 'openai'],
    ['POST', '/api/providers/anthropc/test', 'anthropic'],
    ['GET', '/api/providers/ollamma/detect', 'ollama'],
  ] as const) {
    const { status, body } = await host.json(method, path)
    expect([path, status, body.error.message]).toEqual([path, 404, expect.stringContaining(`did you mean "${near}"?`)])
  }
})
