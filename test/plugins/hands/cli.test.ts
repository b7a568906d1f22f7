import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { definition, handPlugins, writeHand } from './stage.ts'

let home: string
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-hand-cli-'))
  host = await startHost({ home, plugins: [...handPlugins, 'providers/builtin', 'hands'] })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['hand', ...args, '--home', home])

it('installs, shows, checks, activates, changes, pauses and removes hands', async () => {
  const source = await writeHand({ home: join(home, 'elsewhere') }, 'tides')
  expect((await svc('install', source)).stdout).toBe(`The hand "tides" is in ${join(home, 'hands', 'tides')}\n`)
  expect(await svc('install', join(home, 'none'))).toMatchObject({ code: 4 })
  expect((await svc('show', 'tides')).stdout).toMatch(
    /Tides \(tides\)[\s\S]*works +every 10 min[\s\S]*kv_get[\s\S]*harbour: Harbour \(hamburg \| husum\)/,
  )
  expect((await svc('check', 'nobody')).stderr).toContain('svc hand list` names them')
  expect((await svc('check', 'tides')).stdout).toBe('ok       Tools\n')
  expect(await svc('check', 'browser')).toMatchObject({ code: 1, stdout: expect.stringContaining('missing  Tools') })
  expect((await svc('activate', 'tides', '--set', 'harbour=husum; loud=true')).stdout).toContain(
    'tides/default is active as agent "tides-agent"',
  )
  expect(await svc('activate', 'tides', '--set', 'harbour')).toMatchObject({ code: 2 })
  expect((await svc('activate', 'tides', '--name', 'two')).stdout).toContain('tides/two is active')
  expect((await svc('list', '--active')).stdout).toMatch(/tides\/default +tides-agent +Active/)
  expect(await svc('pause', 'tides')).toMatchObject({ code: 2, stderr: expect.stringContaining('tides/two') })
  expect(await svc('settings', 'tides', 'harbour', 'hamburg')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('tides/default, tides/two'),
  })
  expect((await svc('settings', 'tides', 'loud', 'true', '--instance', 'two')).stdout).toMatch(/loud +true/)
  expect((await svc('settings', 'tides/two', 'loud')).stdout).toMatch(/^KEY.*\nloud +true +Loud\n$/)
  expect(await svc('settings', 'tides/two', 'lout')).toMatchObject({ code: 2 })
  expect((await svc('run', 'tides/two')).stdout).toMatch(/^tides\/two is woken; `svc schedule history /)
  expect((await svc('pause', 'tides/two')).stdout).toBe('tides/two is paused\n')
  expect((await svc('resume', 'tides/two')).stdout).toBe('tides/two is resumed\n')
  expect((await svc('stop', 'tides/two')).stdout).toBe('tides/two is deactivated\n')
  expect((await svc('settings', 'tides', 'harbour', 'hamburg')).stdout).toMatch(/harbour +hamburg +Harbour/)
  expect((await svc('stats', 'tides')).stdout).toMatch(
    /status +Active\nlast run +none yet\nnext run +\d.*Z\nHeight +none yet/,
  )
  expect((await svc('list')).stdout).toMatch(/researcher +data +no/)
  expect((await svc('stop', 'tides')).stdout).toBe('tides/default is deactivated\n')
  expect(await svc('stats', 'tides')).toMatchObject({ code: 4 })
  expect((await svc('remove', 'tides')).stdout).toBe('The hand "tides" is removed\n')
  expect(await svc('remove', 'lead')).toMatchObject({ code: 5, stderr: expect.stringContaining('comes with svc') })
})

it('warns of a hand that has not all that it needs', async () => {
  await writeHand({ home }, 'needy', definition('needy').replace('env_var = "TIDES_TOKEN"', 'required = true'))
  expect((await svc('show', 'needy')).stdout).toContain('token: Token (needed)')
  const made = await svc('activate', 'needy')
  expect([made.code, made.stderr]).toEqual([
    0,
    expect.stringContaining('warning: it lacks the setting "token" (Token): `svc hand settings needy/default token'),
  ])
  expect((await svc('list', '--active')).stdout).toMatch(/needy\/default .*Active, lacks the setting "token"/)
  expect((await svc('stop', 'needy')).code).toBe(0)
  expect((await svc('remove', 'needy')).code).toBe(0)
})

it('doctor names a hand that cannot be used, and one that fails', async () => {
  const check = async () => (await runHere(['doctor', '--json', '--home', home])).stdout
  await writeHand({ home }, 'bad', definition('bad').replace('"toggle"', '"switch"'))
  expect(await check()).toContain('settings.1.setting_type')
  await rm(join(home, 'hands', 'bad'), { recursive: true })
  expect(await check()).toMatch(/17 hands, 0 active/)
})
