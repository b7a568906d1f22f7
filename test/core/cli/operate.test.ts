import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { startTerminal } from '../../support/terminal.ts'
import { runHere } from './here.ts'
import type { Answer } from './here.ts'
import { main, startCli } from './process.ts'

vi.setConfig({ testTimeout: 20_000 })
let home: string
let stage: ChatStage
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-operate-'))
  stage = await openChat({ home })
  stage.fake.always(({ body }) => ({ text: `heard ${String(body.messages?.at(-1)?.content)}` }))
  await svc('chat', '-m', 'count this')
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere([...args, '--home', home])
const json = async (...args: string[]) => JSON.parse((await svc(...args, '--json')).stdout)

describe('svc usage', () => {
  it('sums calls by period, model and agent', async () => {
    const { code, stdout } = await svc('usage')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^PERIOD +CALLS .*\nlast hour +1 +\d+ +\d+ +\$[^]*\nlast month +1 /)
    expect(stdout).toMatch(/\n\nMODEL, IN ALL .*\nopenai\/\S+ +1 [^]*\n\nAGENT, IN ALL .*\nassistant +1 /)
  })
  it('has one period on request, and all of it as JSON', async () => {
    expect((await svc('usage', '--period', 'week')).stdout).toMatch(
      /^PERIOD.*\nlast week .*\n\nMODEL, LAST WEEK .*\nopenai[^]*\n\nAGENT, LAST WEEK .*\nassistant +1 /,
    )
    expect(await json('usage', '--period', 'day')).toMatchObject({
      periods: [{ period: 'day', request_count: 1 }],
      models: [{ request_count: 1 }],
      agents: [{ name: 'assistant' }],
    })
  })
})

describe('svc budget', () => {
  it('shows and sets what all agents may spend', async () => {
    expect((await svc('budget')).stdout).toMatch(
      /^budget of all agents: within the limits\n.*\nthis hour +\$.* unlimited/,
    )
    const { stdout } = await svc('budget', 'set', '--daily', '2.5')
    expect(stdout).toMatch(/\ntoday +\$\S+ +\$2\.5 +\d+ %\n/)
    expect(await json('budget', 'show')).toMatchObject({ daily_limit_usd: 2.5 })
    await svc('budget', 'set', '--daily', 'default')
    expect(await json('budget')).toMatchObject({ daily_limit_usd: 0 })
  })
  it('of one agent too, tokens included', async () => {
    const { stdout } = await svc('budget', 'set', '--agent', 'assistant', '--tokens', '1000', '--monthly', '7')
    expect(stdout).toMatch(
      /^budget of "assistant": [^]*\nthis month .* \$7 [^]*\ntokens of this hour +\d+ +1000 +\d+ %/,
    )
    await svc('budget', 'set', '--agent', 'assistant', '--tokens', '0', '--monthly', 'default')
  })
  it.each([
    [['--daily', 'much'], /expected a number or "default", found "much"/],
    [[], /no limit was given/],
  ])('refuses %j and says what to give', async (words, reason) => {
    expect(await svc('budget', 'set', ...words)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(reason) as string,
    })
  })
})

describe('svc logs', () => {
  it('shows the last lines and ends', async () => {
    const { code, stdout } = await svc('logs', '--tail', '3')
    expect(code).toBe(0)
    expect(
      stdout.split('\n').filter((line) => /^\d{4}-\d\d-\d\d [\d:.]+ (?:info|warn|error) +/.test(line)),
    ).not.toHaveLength(0)
    expect((await svc('logs', '--tail', '0')).stdout).toBe('')
  })
  it('filters, and gives a JSON object a line', async () => {
    await stage.host.json('POST', '/api/plugins/kv/reload')
    const { stdout } = await svc('logs', '--filter', '"kv"', '--json')
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { message: string; tag: string })
    expect(lines.length).toBeGreaterThan(0)
    for (const { message, tag } of lines) expect(`${tag} ${message}`).toContain('"kv"')
    expect((await svc('logs', '--level', 'error')).stdout).not.toMatch(/ (?:info|warn) /)
  })
  it('goes on with --follow as lines are written', async () => {
    const following = startCli(['logs', '--follow', '--filter', '"kv"', '--tail', '1', '--home', home])
    await following.prints(/"kv"/)
    await stage.host.json('POST', '/api/plugins/kv/reload')
    await following.prints(/"kv"[^]*"kv"/)
    following.kill('SIGINT')
    expect((await following.ended).signal).toBe('SIGINT')
  })
  it('refuses a number of lines that cannot be', async () => {
    expect(await svc('logs', '--tail', '501')).toMatchObject({ code: 2 })
    expect(await svc('logs', '--level', 'loud')).toMatchObject({ code: 2 })
  })
})

it('svc security lists each system, and the exit code says whether all are active', { timeout: 60_000 }, async () => {
  const { code, stdout } = await svc('security')
  expect(stdout).toMatch(/^SYSTEM +STATE +REFUSED +LAST\n/)
  expect(stdout).toMatch(/^ssrf_protection +\w+ +\d+/m)
  expect(stdout).toMatch(code === 0 ? /\nAll 16 are active; tried .* UTC\.\n$/ : /\n\d+ of 16 are active; tried .*\n$/)
})

describe('svc agent logs', () => {
  it('shows the audit log of an agent, the newest last', async () => {
    const { code, stdout } = await svc('agent', 'logs', 'assistant')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^WHEN +LEVEL +ACTION +OUTCOME +DETAIL\n\d{4}-.* UTC +info /)
    expect((await svc('agent', 'logs', 'assistant', '--tail', '0')).code).toBe(2)
    expect((await svc('agent', 'logs', 'nobody')).code).toBe(4)
  })
})

describe('svc agent edit', () => {
  const editor = async (script: string): Promise<string> => {
    const file = join(home, `editor-${Math.trunc(performance.now() * 1000)}`)
    await writeFile(file, `#!/bin/sh\n${script}\n`)
    await chmod(file, 0o700)
    return file
  }
  const described = async () => (await json('agent', 'show', 'edited')).description
  beforeAll(() => stage.spawn('edited'))

  it('replaces the manifest with what the editor leaves', async () => {
    const EDITOR = await editor(
      `printf 'description = "from the editor"\\n' | cat - "$1" > "$1.new" && mv "$1.new" "$1"`,
    )
    const answer = await runHere(['agent', 'edit', 'edited', '--home', home], { EDITOR, VISUAL: '' })
    expect([answer.code, answer.stderr]).toEqual([0, ''])
    expect(await described()).toBe('from the editor')
  })
  it('changes nothing when the text is as it was, or the editor fails', async () => {
    expect(await runHere(['agent', 'edit', 'edited', '--home', home], { EDITOR: 'true', VISUAL: '' })).toMatchObject({
      code: 0,
      stdout: 'nothing was changed\n',
    })
    expect(await runHere(['agent', 'edit', 'edited', '--home', home], { EDITOR: 'false', VISUAL: '' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('set EDITOR to one that is installed') as string,
    })
  })
  it('shows the line of a mistake, and keeps the text where nobody can go on', async () => {
    const EDITOR = await editor(`sed -i 's/^name = .*/name = 5/' "$1"`)
    const { code, stderr } = await runHere(['agent', 'edit', 'edited', '--home', home], { EDITOR, VISUAL: '' })
    expect(code).toBe(1)
    expect(stderr).toMatch(/\n {2}line \d+: name = 5\n/)
    const [, kept = ''] = /your text is kept in (\S+)/.exec(stderr) ?? []
    expect(await readFile(kept, 'utf8')).toContain('name = 5')
    expect(await described()).toBe('from the editor')
    await rm(join(kept, '..'), { recursive: true })
  })
  it('opens the editor again in a terminal', async () => {
    const EDITOR = await editor(
      `if grep -q oops "$1"; then sed -i 's/^oops.*$//; s/from the editor/from the second try/' "$1"; else echo 'oops = = 1' >> "$1"; fi`,
    )
    await using terminal = startTerminal(`exec ${process.execPath} ${main} agent edit edited --home ${home}`, {
      env: { EDITOR },
    })
    await terminal.shows(/line \d+: oops = = 1\n[^]*Go on editing\? \[y\/N\]/)
    terminal.type('y\r')
    await terminal.shows(/agent "edited" has the new manifest/)
    expect((await terminal.ended).code).toBe(0)
    expect(await described()).toBe('from the second try')
  })
})

describe('svc session export', () => {
  it('writes the whole conversation as Markdown', async () => {
    const { code, stdout } = await svc('session', 'export', '1')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^# count this\n\nassistant, session [\da-f-]+\n\n## you, .* UTC\n\ncount this\n\n## assistant, .* UTC\n\nheard count this/,
    )
  })
  it('as JSON into a new file of this user alone, and over no other file', async () => {
    const file = join(home, 'export.json')
    const words = ['session', 'export', '1', '--format', 'json', '--output', file]
    expect((await svc(...words)).code).toBe(0)
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({
      message_count: 2,
      messages: [{ content: 'count this' }, { content: expect.stringContaining('heard') as string }],
    })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await svc(...words)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is there already') as string,
    })
  })
})
