import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CrashRecord } from '../../../core/host/crash-record.ts'
import { startHost } from '../../support/host.ts'

const source = (name: string): string =>
  `import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
export default definePlugin({ name: '${name}', version: '1.0.0', config: v.object({}), setup: () => ({}) })
`

it('sets aside a plugin that ended the daemon again and again, and no other; a reload tries it again', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-crashes-'))
  const folder = (name: string): string => join(home, 'plugins', name)
  for (const name of ['bad', 'good']) {
    await mkdir(folder(name), { recursive: true })
    await writeFile(join(folder(name), 'index.ts'), source(name))
  }
  const start = () =>
    startHost({
      plugins: ['audit', 'plugin-admin'],
      home,
      memory: true,
      listen: false,
      config: { plugins: { watch: false } },
    })
  for (let crash = 0; crash < 3; crash++) {
    await using host = await start()
    expect((await host.json('GET', '/api/plugins/bad')).body.state).toBe('loaded')
    host.app.noteCrash(folder('bad'), new Error('thrown in\n a timer'))
  }
  await using host = await start()
  const { body } = await host.json('GET', '/api/plugins/bad')
  expect(body).toMatchObject({ state: 'disabled', error: expect.stringContaining('3 times') as string })
  expect(body.error).toContain('"thrown in a timer"')
  expect(host.log.join('\n')).toContain('plugin "bad" is set aside')
  expect((await host.json('GET', '/api/plugins/good')).body.state).toBe('loaded')
  expect(await host.json('POST', '/api/plugins/bad/reload')).toMatchObject({ status: 200 })
  expect((await host.json('GET', '/api/plugins/bad')).body).toMatchObject({ state: 'loaded', error: null })
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true })
})

it('forgets crashes outside the window, and never sets aside when the limit is 0', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-crashes-'))
  let [now, max] = [0, 2]
  const record = new CrashRecord(
    home,
    () => ({ max, windowMs: 1000 }),
    () => now,
  )
  record.note('/a', new Error('one'))
  now = 2000
  record.note('/a', new Error('two'))
  expect(record.reasonOf('/a')).toBeUndefined()
  now = 2500
  record.note('/a', new Error('three'))
  expect(record.reasonOf('/a')).toContain('2 times within 1 seconds')
  expect(record.reasonOf('/b')).toBeUndefined()
  max = 0
  expect(record.reasonOf('/a')).toBeUndefined()
  max = 2
  await writeFile(join(home, 'plugin-crashes.json'), '{"/a":')
  expect(record.reasonOf('/a')).toBeUndefined()
  await rm(home, { recursive: true })
})
