import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { exits } from '../../../core/cli/failure.ts'
import { startHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'

it('says what would come over, takes it over, and says what to do about what is not supported', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-migrate-cli-'))
  const source = join(home, '..', `${home.split('/').at(-1)}-source`)
  await cp(fileURLToPath(new URL('../../fixtures/migrate/openclaw-2025', import.meta.url)), source, { recursive: true })
  await using host = await startHost({ home, plugins: [...turnPlugins, 'system', 'settings', 'files', 'migrate'] })
  const svc = (...args: string[]) => runHere(['migrate', ...args, '--home', home])
  const rehearsal = await svc(source, '--dry-run')
  expect(rehearsal.stdout).toMatch(/^# Rehearsal of a move from OpenClaw\n[^]*\n## Agents\n\n- helper → helper\n/)
  expect(rehearsal.stdout).toContain('the plugin "channels" is not loaded')
  const { stdout } = await svc(source)
  expect(stdout).toMatch(
    /\n## Conversations\n\n- main → helper: .{36}, 2 messages\n[^]*This report is \S+openclaw\.md\.\n$/,
  )
  expect(await svc('--from', 'autogpt')).toMatchObject({
    code: exits.usage,
    stderr: expect.stringContaining('AutoGPT is not supported'),
  })
  expect(await svc(source, '--from', 'openfang')).toMatchObject({
    code: exits.usage,
    stderr: expect.stringContaining('not both'),
  })
  expect((await svc(join(source, 'gone'))).code).toBe(exits.notFound)
  expect((await svc(join(source, 'sessions'))).code).toBe(exits.usage)
  expect(host.defects()).toEqual([])
  await rm(source, { recursive: true })
  await rm(home, { recursive: true, force: true })
})
