import { expect, it, onTestFinished } from 'vitest'
import { DatabaseLink } from '../../faults/cluster/database-link.ts'
import { startDaemon } from '../../support/daemon.ts'
import { startHost } from '../../support/host.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { runHere } from './here.ts'

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? ''

it('while the database is away, svc doctor, status and cluster status say so, and what to do', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const link = await DatabaseLink.open(new URL(database.url).searchParams.get('host') ?? '')
  onTestFinished(() => link[Symbol.asyncDispose]())
  const url = link.through(database.url)
  const plugins = ['audit', 'cluster', 'system', 'usage', 'agents']
  const host = await startHost({ plugins, config: { database_url: url } })
  onTestFinished(() => host[Symbol.asyncDispose]())
  link.goAway(true)
  onTestFinished(() => link.goAway(false))
  const svc = (...command: string[]) => runHere([...command, '--home', host.home], { SVC_DATABASE_URL: url })
  const [doctor, status, members] = [await svc('doctor'), await svc('status'), await svc('cluster', 'status')]
  expect([doctor.code, doctor.stdout]).toEqual([
    1,
    expect.stringMatching(/FAIL {2}database .*The database server does not answer\n {6}-> start the PostgreSQL server/),
  ])
  expect(doctor.stdout).toMatch(/warn {2}not checked .*\bcluster\b.*: the daemon does not answer this/)
  expect(doctor.stdout).not.toMatch(/is the key|correct the plugin/)
  expect(lastLine(doctor.stdout)).toMatch(/^1 of \d+ checks failed, and \d+ warns?\.$/)
  expect([status.code, status.stdout]).toEqual([1, expect.stringMatching(/problem +The database server does not ans/)])
  expect([members.code, members.stderr]).toEqual([
    1,
    expect.stringMatching(
      /The database server does not answer\n {2}-> try again in \d+ seconds; .*doctor. says what is/,
    ),
  ])
})

it('svc doctor names a wrong key and a lock-out, asks once, and is not locked out by others at its address', async () => {
  const host = await startHost({
    plugins: ['audit', 'system'],
    memory: true,
    config: { api_key: 'right', rate_limit: { failed_auth_per_minute: 2 } },
  })
  onTestFinished(() => host[Symbol.asyncDispose]())
  const doctor = (key: string) => runHere(['doctor', '--home', host.home], { SVC_API_KEY: key })
  const refused = await doctor('wrong')
  expect([refused.code, refused.stdout]).toEqual([1, expect.stringMatching(/FAIL {2}key .*\n {6}-> set SVC_API_KEY/)])
  expect(lastLine(refused.stdout)).toContain('1 of ')
  const wrong = { authorization: 'Bearer wrong' }
  // More wrong keys than that lock the address out.
  const ask = async () => (await host.json('GET', '/api/status', undefined, wrong)).status
  expect(await ask()).toBe(401)
  for (let n = 0; n < 100 && (await ask()) === 401; n++);
  const well = await runHere(['status', '--home', host.home], { SVC_API_KEY: 'right' })
  expect([well.code, well.stdout]).toEqual([0, expect.stringContaining('svc')])
  for (let n = 0; n < 3; n++) await doctor('wrong')
  const locked = await doctor('right')
  expect([locked.code, locked.stdout]).toEqual([1, expect.stringMatching(/FAIL {2}key .*\n {6}-> wait \d+ seconds/)])
  const status = await runHere(['status', '--home', host.home], { SVC_API_KEY: 'right' })
  expect([status.code, status.stderr]).toEqual([1, expect.stringMatching(/-> wait \d+ seconds and try again/)])
})

it('svc status of a daemon that hangs ends, and says what to do', async () => {
  await using folder = await temporaryFolder()
  await using daemon = await startDaemon({ home: folder.path })
  process.kill(daemon.pid, 'SIGSTOP')
  const status = await runHere(['status', '--home', folder.path])
  expect([status.code, status.stderr]).toEqual([
    3,
    expect.stringMatching(/\(process \d+\) does not answer: .*\(timeout\)\n {2}-> .*kill -9 \d+/),
  ])
}, 60_000)
