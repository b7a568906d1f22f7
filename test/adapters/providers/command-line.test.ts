import { access, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { commandLine } from '../../../adapters/providers/command-line/driver.ts'
import { programs } from '../../../adapters/providers/command-line/programs.ts'
import { createSpawn } from '../../../core/process/spawn.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { collect, request, textOf } from '../../contract/provider.ts'
import { openProgram } from '../../support/program-stage.ts'
import { createRig, hi } from '../../plugins/providers/rig.ts'

const fine = { kind: 'text', deltas: ['fine'] } as const
const names = ['claude-code', 'codex-cli', 'gemini-cli', 'qwen-code'] as const

describe('a program that answers', () => {
  it.each(names)('%s reads the conversation and nothing of the daemon', async (name) => {
    vi.stubEnv('ANTHROPIC_API_KEY', 'canary')
    await using stage = await openProgram(name)
    const turns = [
      ...request('What is 2+2?').turns,
      { role: 'assistant' as const, text: 'Four.', calls: [] },
      ...request('And 3+3?').turns,
    ]
    expect(textOf(await collect(stage.client, { ...stage.play(fine), turns }))).toBe('fine')
    const [run] = await stage.runs()
    expect(run?.prompt).toContain('User: What is 2+2?\n\nAssistant: Four.\n\nUser: And 3+3?')
    // Instructions stand where the program takes them, once.
    expect([run?.instructions, run?.prompt.includes('You are a test.')]).toEqual(
      name === 'claude-code' || name === 'gemini-cli' ? ['You are a test.', false] : [undefined, true],
    )
    expect(JSON.stringify(run?.env)).not.toContain('canary')
    // Neither the words nor the instructions can be seen in a list of processes.
    expect(run?.args.join(' ')).not.toMatch(/2\+2|a test/)
    vi.unstubAllEnvs()
  })
  it('is told to leave its own tools, settings and memory alone', async () => {
    const given = await Promise.all(
      names.map(async (name) => {
        await using stage = await openProgram(name)
        await collect(stage.client, stage.play(fine))
        const [run] = await stage.runs()
        return [run?.args.join(' '), run?.settings]
      }),
    )
    expect(given[0]?.[0]).toMatch(/--setting-sources {2}--strict-mcp-config .*--tools {2}--model fake-1/)
    expect(given[1]?.[0]).toMatch(/--ephemeral --ignore-user-config --ignore-rules .*--sandbox read-only /)
    expect(given[1]?.[0]).toMatch(/--sandbox read-only -c features.shell_tool=false .*--model fake-1 -$/)
    expect(given[2]).toEqual([
      expect.stringMatching(/--approval-mode default --extensions none/),
      expect.objectContaining({ tools: { core: ['none'] } }),
    ])
    expect(given[3]?.[0]).toMatch(/--core-tools none --extensions none/)
  })
  it('runs in an empty folder of its own that is gone afterwards, and is nobody unless it gets a home', async () => {
    await using stage = await openProgram('claude-code')
    await collect(stage.client, stage.play(fine))
    const [run] = await stage.runs()
    expect(run?.folder.toSorted()).toEqual(['.tmp', 'instructions.md'])
    await expect(access(run?.env['HOME'] ?? '/')).rejects.toThrow('ENOENT')
    const home = await mkdtemp(join(tmpdir(), 'svc-home-'))
    await using own = await openProgram('claude-code', { home })
    await collect(own.client, own.play(fine))
    expect((await own.runs())[0]?.env['HOME']).toBe(home)
    await rm(home, { recursive: true })
  })
  it('uses the model it is set to when none is named', async () => {
    await using stage = await openProgram('gemini-cli')
    await collect(stage.client, { ...stage.play(fine), model: 'default' })
    expect((await stage.runs())[0]?.args).not.toContain('--model')
  })
  it('takes no model that would be another option', async () => {
    await using stage = await openProgram('codex-cli')
    await expect(
      collect(stage.client, { ...stage.play(fine), model: '--dangerously-bypass-approvals-and-sandbox' }),
    ).rejects.toMatchObject({ reason: 'not_found' })
    expect(stage.received?.()).toBe(0)
  })
  it('that is not signed in says how to, and whose home it needs', async () => {
    await using stage = await openProgram('qwen-code')
    await expect(collect(stage.client, stage.play({ kind: 'status', status: 401 }))).rejects.toMatchObject({
      reason: 'auth',
      message: expect.stringContaining('[providers.qwen-code] home'),
    })
  })
  it('that writes or takes too much is ended', async () => {
    await using much = await openProgram('gemini-cli', { max_output_bytes: 2048 })
    await expect(collect(much.client, much.play({ kind: 'text', deltas: ['x'.repeat(5000)] }))).rejects.toMatchObject({
      reason: 'malformed',
      retry: 'never',
    })
    await using slow = await openProgram('gemini-cli', { time_limit_secs: 1 })
    await expect(collect(slow.client, slow.play({ kind: 'held', deltas: ['half'] }))).rejects.toMatchObject({
      reason: 'timeout',
    })
    expect(await slow.lastClosed?.()).toBe(false)
  })
})

describe('a program that is not there', () => {
  it('or cannot be run is not tried again', async () => {
    await using stage = await openProgram('claude-code')
    await writeFile(join(stage.bin, 'claude'), '#!/no/such/interpreter\n')
    await expect(collect(stage.client, stage.play(fine))).rejects.toMatchObject({ reason: 'not_found', retry: 'never' })
  })
  it('is missing, and its provider says what to install; once it is there it answers', async () => {
    await using stage = await openProgram('claude-code')
    const row = programs.find(({ name }) => name === 'claude-code')
    if (!row) throw new Error('no row')
    await using part = await createRig({
      drivers: [commandLine({ ...row, command: 'no-such-claude' }, createSpawn(new Scope('test')))],
    })
    expect(part.inference.providers()).toMatchObject([
      {
        name: 'claude-code',
        authStatus: 'missing',
        lacks: expect.stringContaining('npm install -g @anthropic-ai/claude-code'),
      },
    ])
    await expect(part.inference.resolve({ provider: 'claude-code', model: 'default' })).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringContaining('[providers.claude-code] path'),
    })
    await using there = await createRig({
      drivers: [commandLine(row, stage.spawn)],
      config: { providers: { 'claude-code': { path: [stage.bin] } } },
    })
    expect(there.inference.providers()).toMatchObject([{ authStatus: 'configured' }])
    const model = await there.inference.resolve({ provider: 'claude-code', model: 'default' })
    // It is paid for elsewhere: that is not free.
    expect(model).toMatchObject({ model: 'sonnet', price: undefined })
    stage.play(fine)
    const events = []
    for await (const event of there.inference.complete(model, hi, new AbortController().signal))
      if (event.type !== 'phase') events.push(event)
    expect(textOf(events)).toBe('fine')
  })
})
