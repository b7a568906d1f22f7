import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startDaemon } from '../../support/daemon.ts'
import { processesOf } from '../../support/plugin-processes.ts'
import { pluginText, routeText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { runHere } from '../cli/here.ts'

// As it is installed: the command, the built daemon and real processes.

const guest = pluginText('guest', {
  members: `uses: { routes: ['/api/guest', '/api/guest/tool'], tools: ['guest_greet'] },`,
  setup: `${routeText('/api/guest', 'from its process')}
    ctx.tools.add(defineTool({ name: 'guest_greet', description: 'Greets', risk: 'read', input: v.object({ name: v.string() }),
      run: async ({ name }) => 'Hello, ' + name }))
    ctx.routes.add(defineRoute({ method: 'POST', path: '/api/guest/tool', summary: 'Calls it', auth: 'public', effect: 'own', cost: 1,
      returns: v.any(), handle: ({ signal }: any) => ctx.tools.call('guest_greet', { name: 'Ada' },
        { agentId: 'a', agentName: 'ada', sessionId: 's', turnId: 't', callId: 'c', signal }) }))
    return {}`,
})

it('answers a route and a tool from a process that ends with the daemon, and with the plugin', async () => {
  await using home = await temporaryFolder()
  await using source = await temporaryFolder()
  await writeFile(join(home.path, 'config.toml'), '[plugins]\nisolation = "worker"\n')
  await writePlugin(join(source.path, 'guest'), guest)
  const svc = (...words: string[]) => runHere(['plugin', ...words, '--home', home.path])
  {
    await using daemon = await startDaemon({ home: home.path })
    expect(await svc('add', join(source.path, 'guest'), '--yes')).toMatchObject({ code: 0, stderr: '' })
    expect(await (await fetch(`${daemon.url}/api/guest`)).json()).toEqual({ text: 'from its process' })
    const called = await fetch(`${daemon.url}/api/guest/tool`, { method: 'POST' })
    expect(await called.json()).toMatchObject({ text: 'Hello, Ada', failed: false })
    expect((await svc('list')).stdout).toMatch(/guest +1\.0\.0 +loaded +declared +worker/)
    await expect.poll(() => processesOf(home.path)).not.toEqual([])
    expect(await daemon.stop()).toBe(0)
    expect(await processesOf(home.path)).toEqual([])
  }
  await using daemon = await startDaemon({ home: home.path })
  expect((await fetch(`${daemon.url}/api/guest`)).status).toBe(200)
  await expect.poll(() => processesOf(home.path)).not.toEqual([])
  expect(await svc('remove', 'guest')).toMatchObject({ code: 0 })
  expect((await fetch(`${daemon.url}/api/guest`)).status).toBe(404)
  expect(await processesOf(home.path)).toEqual([])
})
