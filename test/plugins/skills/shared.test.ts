import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { startClawHub } from '../../support/fake-clawhub.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { openTwoDaemons } from '../../support/two-daemons.ts'
import { skillText } from './stage.ts'

/** Told by `skills.installed`. */
it('a skill that is installed, updated and removed at one daemon is so at the others, now or at their start', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const folder = await mkdtemp(join(tmpdir(), 'svc-skill-shared-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const start = async (): Promise<TestHost> => {
    const host = await startHost({
      plugins: ['audit', 'agents', 'cluster', 'skills'],
      config: { database_url: database.url },
    })
    onTestFinished(() => host[Symbol.asyncDispose]())
    return host
  }
  const source = join(folder, 'tides')
  const install = async (host: TestHost, description: string): Promise<void> => {
    await mkdir(source, { recursive: true })
    await writeFile(join(source, 'SKILL.md'), skillText('tides', description))
    const answer = await host.json('POST', '/api/skills/install', { source, update: true })
    expect([answer.status, answer.body.error]).toEqual([201, undefined])
  }
  const described = async (host: TestHost): Promise<unknown> =>
    (await host.json('GET', '/api/skills/tides')).body.description
  const [one, two] = [await start(), await start()]
  await install(one, 'First.')
  await eventually(async () => expect(await described(two)).toBe('First.'))
  await database.query(`CREATE TABLE saved_row AS SELECT * FROM skills_installed;
    CREATE TABLE saved_file AS SELECT * FROM skills_file`)
  await install(two, 'Second.')
  await eventually(async () => expect(await described(one)).toBe('Second.'))
  // A row of another version stops nothing else.
  await database.query(`CREATE TEMP TABLE other AS SELECT * FROM skills_installed;
    UPDATE other SET name = 'dunes', state = 'of another version'; INSERT INTO skills_installed SELECT * FROM other`)
  const late = await start()
  await eventually(async () => expect(await described(late)).toBe('Second.'))
  expect(late.log.filter((line) => /row of skills_installed with name "dunes" is left out/.test(line))).toHaveLength(1)
  // A row that no daemon with the key of the vault wrote.
  await database.query(`UPDATE skills_file SET bytes = 'forged'; UPDATE skills_installed SET revision = 'forged'`)
  const wary = await start()
  await eventually(() => expect(wary.log.some((line) => line.includes('not written by a daemon'))).toBe(true))
  expect((await wary.json('GET', '/api/skills/tides')).status).toBe(404)
  await install(one, 'Third.')
  await eventually(async () => expect(await described(wary)).toBe('Third.'))
  await late.json('DELETE', '/api/skills/tides')
  for (const host of [one, two, wary])
    await eventually(async () => expect((await host.json('GET', '/api/skills/tides')).status).toBe(404))
  await expect(readFile(join(one.home, 'skills', 'tides', 'SKILL.md'))).rejects.toThrow('ENOENT')

  // An older row that is put back does not bring the skill back.
  await database.query(`DELETE FROM skills_installed WHERE name = 'tides'; DELETE FROM skills_file;
    INSERT INTO skills_installed SELECT * FROM saved_row; INSERT INTO skills_file SELECT * FROM saved_file`)
  await one.json('POST', '/api/skills/create', { name: 'marsh', description: 'Another.', runtime: 'prompt_only' })
  const warned = (host: TestHost) => host.app.daemon.warnings().filter((text) => text.startsWith('skills:'))
  for (const host of [two, wary]) {
    await eventually(() =>
      expect(warned(host)).toEqual([expect.stringMatching(/^skills: skill "tides": this home has a later change/)]),
    )
    expect((await host.json('GET', '/api/skills/marsh')).status).toBe(200)
    expect((await host.json('GET', '/api/skills/tides')).status).toBe(404)
  }
  await install(two, 'Fourth.')
  await eventually(async () => expect(await described(wary)).toBe('Fourth.'))
  await eventually(() => expect([warned(two), warned(wary)]).toEqual([[], []]))
})

it('a skill that one daemon has of a hub is at the other too, with its values; an update there asks for what is new', async () => {
  await using hub = await startClawHub()
  await using both = await openTwoDaemons((database) =>
    startHost({
      plugins: ['audit', 'agents', 'cluster', 'skills'],
      config: {
        database_url: database.url,
        outbound: { allow: ['127.0.0.1'] },
        plugins: { skills: { clawhub_url: hub.origin } },
      },
    }),
  )
  const { one, two } = both
  const publish = (version: string, permissions: readonly string[]): void => {
    const toml =
      `[skill]\nname = "counter"\nversion = "${version}"\n[runtime]\ntype = "python"\nentry = "run.py"\n` +
      '[[tools.provided]]\nname = "go"\ndescription = "Goes"\n' +
      `[requirements]\ncapabilities = ${JSON.stringify(permissions)}\n[config.COUNTED_TOKEN]\n`
    const files = { 'SKILL.md': skillText('counter'), 'skill.toml': toml, 'run.py': 'print("{}")\n' }
    hub.skills.splice(0, 1, { slug: 'counter', version, files })
  }
  const install = (host: TestHost, body: object) =>
    host.json('POST', '/api/clawhub/install', { slug: 'counter', ...body })
  const variables = async (host: TestHost): Promise<unknown> =>
    (await host.json('GET', '/api/skills/counter/config')).body.variables
  publish('1.0.0', [])
  const first = ['runs:python', 'env:COUNTED_TOKEN']
  expect((await install(one, { accept: first })).status).toBe(201)
  await eventually(async () =>
    expect((await two.json('GET', '/api/skills/counter')).body).toMatchObject({ version: '1.0.0', runtime: 'python' }),
  )
  await one.json('PUT', '/api/skills/counter/config', { values: { COUNTED_TOKEN: 'from one' } })
  expect(await variables(two)).toMatchObject([{ name: 'COUNTED_TOKEN', source: 'vault' }])

  publish('2.0.0', ['network:example.org'])
  const asked = await install(two, { update: true })
  expect([asked.status, asked.body.error.details.missing]).toEqual([409, ['network:example.org']])
  expect((await two.json('GET', '/api/skills/counter')).body.version).toBe('1.0.0')
  expect((await install(two, { update: true, accept: ['network:example.org'] })).status).toBe(201)
  await eventually(async () =>
    expect((await one.json('GET', '/api/skills/counter')).body).toMatchObject({
      version: '2.0.0',
      permissions: expect.arrayContaining(['network:example.org']),
    }),
  )
  expect(await variables(one)).toMatchObject([{ source: 'vault' }])
  await one.json('DELETE', '/api/skills/counter')
  await eventually(async () => expect((await two.json('GET', '/api/skills/counter')).status).toBe(404))
  expect(hub.asked().filter((path) => path.startsWith('/api/v1/download'))).toHaveLength(3)
})
