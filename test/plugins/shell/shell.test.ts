import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { openTools } from '../../support/tool-stage.ts'
import type { ToolStage } from '../../support/tool-stage.ts'

let stage: ToolStage
beforeAll(async () => {
  stage = await openTools(['shell'], { config: { plugins: { shell: { processes_per_agent: 2 } } } })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})

const alive = async (text: string): Promise<boolean> => {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  return (await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')))).some(
    (line) => line.includes(text),
  )
}

describe('shell_exec', () => {
  it('runs a program in the workspace of the agent, through a whole turn', async () => {
    const agent = await stage.spawn('runner', 'shell = ["echo hello", "pwd"]')
    expect(await stage.say(agent, 'use shell_exec {"command":"echo hello"}')).toMatch(/exit code 0\nhello/)
    expect((await stage.call(agent, 'shell_exec', { command: 'pwd' })).text).toContain(join('workspaces', agent))
    expect((await stage.audit('shell_exec'))[0]).toContain('pwd')
  })

  it('is refused by default, and that is in the audit log', async () => {
    const agent = await stage.spawn('nobody')
    expect(await stage.call(agent, 'shell_exec', { command: 'echo hello' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('capabilities.shell'),
    })
    expect((await stage.audit('capability_check'))[0]).toContain('echo hello')
  })

  it('gives words to the program as they are', async () => {
    const agent = await stage.spawn('literal', 'shell = ["echo *"]')
    expect((await stage.call(agent, 'shell_exec', { command: `echo '; echo pwn $(id)'` })).text).toBe(
      'exit code 0\n; echo pwn $(id)\n',
    )
    expect(await stage.call(agent, 'shell_exec', { command: 'echo a; echo pwn' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('needs a shell because of ;'),
    })
    expect(await stage.call(agent, 'shell_exec', { command: 'echo "a' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('cannot be read'),
    })
  })

  it('uses a shell for those who may', async () => {
    const agent = await stage.spawn('sheller', 'shell = ["sh -c *"]')
    expect((await stage.call(agent, 'shell_exec', { command: 'echo a | tr a b; exit 3' })).text).toBe(
      'exit code 3\nb\n',
    )
  })

  it('refuses another program and names what is allowed', async () => {
    const agent = await stage.spawn('limited', 'shell = ["git *"]')
    expect((await stage.call(agent, 'shell_exec', { command: 'ls -la' })).text).toMatch(/may not run "ls -la".*git \*/)
    expect((await stage.call(agent, 'shell_exec', { command: 'no-such-program x' })).text).toContain(
      'There is no program',
    )
  })

  it('stops at its time, and says so', async () => {
    const agent = await stage.spawn('slow', 'shell = ["sleep *"]')
    const mark = `61.${process.pid}1`
    expect((await stage.call(agent, 'shell_exec', { command: `sleep ${mark}`, timeout_seconds: 1 })).text).toContain(
      'took longer than 1 seconds',
    )
    expect(await alive(mark)).toBe(false)
  })

  it('keeps the end of much output', async () => {
    const agent = await stage.spawn('loud', 'shell = ["seq *"]')
    const { text } = await stage.call(agent, 'shell_exec', { command: 'seq 1 40000' })
    expect(text).toMatch(/bytes are not shown/)
    await expect(stage.call(agent, 'shell_exec', { command: 'seq 1 3' })).resolves.toMatchObject({
      text: 'exit code 0\n1\n2\n3\n',
    })
  })

  it('shows nothing of the daemon', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'canary-of-the-shell')
    const agent = await stage.spawn('curious', 'shell = ["*"]')
    const { text } = await stage.call(agent, 'shell_exec', { command: 'env; cat /proc/*/environ' })
    vi.unstubAllEnvs()
    expect(text).not.toContain('canary-of-the-shell')
    expect(text).toContain(join('workspaces', agent))
  })

  it('obeys the exec_policy of the manifest', async () => {
    const manifest = (policy: string) => `[exec_policy]\n${policy}`
    const denied = await stage.spawn('policy-deny', 'shell = ["*"]', manifest('mode = "deny"'))
    const listed = await stage.spawn(
      'policy-list',
      'shell = ["*"]',
      manifest('mode = "allowlist"\nallowed_commands = ["seq"]'),
    )
    const broken = await stage.spawn('policy-broken', 'shell = ["*"]', manifest('mode = "maybe"'))
    expect((await stage.call(denied, 'shell_exec', { command: 'echo a' })).failed).toBe(true)
    expect((await stage.call(broken, 'shell_exec', { command: 'echo a' })).failed).toBe(true)
    expect((await stage.call(listed, 'shell_exec', { command: 'seq 1' })).failed).toBe(false)
    expect((await stage.call(listed, 'shell_exec', { command: 'ls' })).text).toContain('exec_policy')
  })
})

describe('a process', () => {
  it('is started, asked, written to and ended', async () => {
    const agent = await stage.spawn('keeper', 'shell = ["cat", "cat *"]')
    const { process_id: id, running } = await stage.json(agent, 'process_start', { command: 'cat', args: [] })
    expect(running).toBe(true)
    expect(await stage.json(agent, 'process_list')).toMatchObject([{ process_id: id, command: 'cat', running: true }])
    expect((await stage.call(agent, 'process_write', { process_id: id, data: 'line\n' })).failed).toBe(false)
    await eventually(async () => {
      expect((await stage.json(agent, 'process_poll', { process_id: id })).output).toBe('line\n')
    })
    expect(await stage.json(agent, 'process_kill', { process_id: id })).toMatchObject({ running: false })
    expect(await stage.json(agent, 'process_list')).toEqual([])
    expect(await stage.call(agent, 'process_poll', { process_id: id })).toMatchObject({ failed: true })
  })

  it('tells its last words once', async () => {
    const agent = await stage.spawn('brief', 'shell = ["echo *"]')
    const { process_id: id } = await stage.json(agent, 'process_start', { command: 'echo', args: ['bye'] })
    let output = ''
    const last = await eventually(async () => {
      const found = await stage.json(agent, 'process_poll', { process_id: id })
      output += found.output
      expect(found.running).toBe(false)
      return found
    })
    expect(output).toBe('bye\n')
    expect(last.exit_code).toBe(0)
  })

  it('belongs to one agent, which has a few at most', async () => {
    const agent = await stage.spawn('owner', 'shell = ["sleep *"]')
    const other = await stage.spawn('other', 'shell = ["sleep *"]')
    const { process_id: id } = await stage.json(agent, 'process_start', { command: 'sleep 62' })
    await stage.json(agent, 'process_start', { command: 'sleep', args: ['62'] })
    expect((await stage.call(agent, 'process_start', { command: 'sleep 62' })).text).toContain('2 processes')
    for (const tool of ['process_poll', 'process_kill'])
      expect(await stage.call(other, tool, { process_id: id })).toMatchObject({
        failed: true,
        text: expect.stringContaining('There is no process'),
      })
    expect(await stage.json(other, 'process_list')).toEqual([])
  })

  it('ends with its agent', async () => {
    const agent = await stage.spawn('mortal', 'shell = ["sleep *"]')
    const mark = `63.${process.pid}1`
    await stage.json(agent, 'process_start', { command: `sleep ${mark}` })
    await eventually(async () => {
      expect(await alive(mark)).toBe(true)
    })
    await stage.host.json('DELETE', `/api/agents/${agent}`)
    await eventually(async () => {
      expect(await alive(mark)).toBe(false)
    })
  })

  it('ends when nobody asks for it any more, and with the plugin', async () => {
    await using short = await openTools(['shell'], { config: { plugins: { shell: { process_idle_secs: 1 } } } })
    const agent = await short.spawn('idle', 'shell = ["sleep *"]')
    const [idle, unloaded] = [`64.${process.pid}1`, `65.${process.pid}1`]
    // It may be over before anybody could look for it on a slow machine.
    expect(await short.json(agent, 'process_start', { command: `sleep ${idle}` })).toMatchObject({ running: true })
    await eventually(async () => {
      expect(await alive(idle)).toBe(false)
    })
    expect(await short.json(agent, 'process_list')).toEqual([])
    await short.json(agent, 'process_start', { command: `sleep ${unloaded}` })
    await short.host.app.host.unload('shell')
    // The kernel ends what is in the space of a program just after the program itself.
    await expect.poll(() => alive(unloaded)).toBe(false)
    expect(existsSync(short.host.home)).toBe(true)
  })
})

it('a command sees nothing of the daemon, nor of other agents, but its own workspace', async () => {
  const [agent, other] = [await stage.spawn('looker', 'shell = ["*"]'), await stage.spawn('hidden-one', '')]
  await stage.call(other, 'file_write', { path: 'private.txt', content: 'private words' })
  await stage.call(agent, 'file_write', { path: 'own.txt', content: 'own words' })
  const { home } = stage.host
  const foreign = join(home, 'data', 'workspaces', other, 'private.txt')
  const { text } = await stage.call(agent, 'shell_exec', {
    command: `cat own.txt; ls ${home}; cat ${home}/vault.key ${foreign}`,
  })
  expect(text).toContain('own words')
  // Where the system offers no such space the names are there, and only the policy stands before them.
  if (!text.includes('vault.key\n')) expect(text).not.toContain('private words')
})
