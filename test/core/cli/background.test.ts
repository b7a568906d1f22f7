import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { readBuild } from '../../../core/process/installation.ts'
import { runHere } from './here.ts'
import { path, runCli, startDaemon } from './process.ts'

vi.setConfig({ testTimeout: 40_000 })
let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-background-'))
})
afterEach(async () => {
  await runHere(['stop', '--home', home])
  await rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})
const detach = (...words: string[]) => runCli(['start', '--detach', '--home', home, '--port', '0', ...words])

describe('svc start --detach', () => {
  it('returns when the daemon listens, and says where its log is and how to stop it', async () => {
    const { code, stdout, stderr } = await detach()
    expect([code, stderr]).toEqual([0, ''])
    const [, url = '', pid = ''] = /^svc listening on (http:\S+) \(process (\d+)\)\n/.exec(stdout) ?? []
    expect((await fetch(`${url}/api/health`)).status).toBe(200)
    expect(stdout).toContain(`Log: ${home}/daemon.log, or \`svc logs --follow --home ${home}\``)
    expect(stdout).toContain(`Stop it with \`svc stop --home ${home}\``)
    expect(await readFile(join(home, 'daemon.log'), 'utf8')).not.toBe('')
    expect((await stat(join(home, 'daemon.log'))).mode & 0o777).toBe(0o600)
    expect(await runHere(['stop', '--home', home])).toMatchObject({ code: 0, stdout: `svc stopped (process ${pid})\n` })
  })
  it('says the same as JSON, and keeps the log of the run before', async () => {
    const first = JSON.parse((await detach('--json')).stdout)
    expect(first).toMatchObject({ status: 'listening', home, log: join(home, 'daemon.log') })
    await runHere(['stop', '--home', home])
    const second = JSON.parse((await detach('--json')).stdout)
    expect(second.pid).not.toBe(first.pid)
    expect(await readFile(join(home, 'daemon.log.1'), 'utf8')).toContain('stopped')
  })
  it('fails as the daemon does, and leaves the log of one that runs alone', async () => {
    await detach()
    const second = await detach()
    expect(second).toMatchObject({
      code: 7,
      stdout: '',
      // What a daemon advises is for its home.
      stderr: expect.stringContaining(`stop it with \`svc stop --home ${home}\``) as string,
    })
    expect(existsSync(join(home, 'daemon.log.1'))).toBe(false)
    await runHere(['stop', '--home', home])
    await writeFile(join(home, 'config.toml'), 'log_level = 5\n')
    expect(await detach()).toMatchObject({
      code: 6,
      stderr: expect.stringMatching(/config\.toml[^]*-> correct it and try again/) as string,
    })
  })
})

it('the title of the process names the port and the home', async () => {
  await using daemon = await startDaemon(home)
  const title = (await readFile(`/proc/${daemon.pid}/cmdline`, 'utf8')).replaceAll('\0', ' ').trim()
  expect(title).toBe(`svc :${new URL(daemon.url).port} ${home}`)
})

describe('svc update', () => {
  /** Runs the command with this script as npm. */
  const update = async (npm: string | undefined, ...words: string[]) => {
    const bin = join(home, 'bin')
    await mkdir(bin, { recursive: true })
    if (npm !== undefined) {
      await writeFile(join(bin, 'npm'), `#!/bin/sh\n${npm}\n`)
      await chmod(join(bin, 'npm'), 0o700)
    }
    const PATH = npm === undefined ? bin : `${bin}${delimiter}${path}`
    return await runHere(['update', ...words], { PATH })
  }
  const { version } = readBuild()
  /** What `npm view svc version exports --json` prints. */
  const published = (one: string): string => JSON.stringify({ version: one, exports: { './sdk': {} } })

  it('--check compares this version with what npm finds', async () => {
    const newer = await update(
      `test "$1 $2 $3 $4" = "view svc version exports" && echo '${published('99.0.0')}'`,
      '--check',
    )
    expect(newer).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^svc 99\.0\.0 is newer.*npm install -g svc@latest\n/) as string,
    })
    expect(await update(`echo '${published(version)}'`, '--check')).toMatchObject({
      code: 0,
      stdout: `svc ${version} is the newest version.\n`,
    })
    expect(JSON.parse((await update(`echo '${published('0.0.1')}'`, '--check', '--json')).stdout)).toEqual({
      current: version,
      latest: '0.0.1',
      newer: false,
    })
  })
  it.each([
    ['echo "npm error code E404" >&2; exit 1', /not known: npm could not tell \(code E404\)/],
    ['exit 0', /it printed no version/],
    [`echo '"99.0.0"'`, /another program[^]*do not install it/],
    [`echo '{"version": "99.0.0", "exports": {"./lib": "./x.js"}}'`, /another program/],
    [undefined, /there is no program "npm"/],
  ])('says that it cannot know with %j', async (npm, reason) => {
    expect(await update(npm, '--check')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(reason) as string,
    })
  })
  it('installs nothing by itself, and says what does', async () => {
    expect(await update('exit 1')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('`svc update --check` asks') as string,
    })
  })
})
