import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { callTool, callToolJson } from '../plugin-test.ts'
import { echo, guest } from '../wasm/assemble.ts'
import { removeSkill, skillText, startSkills, writeSkill } from './stage.ts'

let test: PluginTest
let agent: string
beforeAll(async () => {
  test = await startSkills({
    fetch: 'network',
    config: {
      outbound: { allow: ['127.0.0.2'] },
      plugins: { skills: { max_output_bytes: 10_000, max_output_files: 2, wasm_fuel: 1000 } },
    },
  })
  agent = await test.spawn('worker', '[capabilities]\ntools = ["*"]\nnetwork = ["*"]\nshell = ["*"]\n')
})
afterAll(() => test[Symbol.asyncDispose]())

interface Written {
  readonly runtime: string
  readonly entry: string
  readonly code: string | Uint8Array
  readonly tools?: readonly string[]
  /** Further lines of `skill.toml`. */
  readonly more?: string
  /** Keys of the tools. */
  readonly keys?: string
}
async function write(
  name: string,
  { runtime, entry, code, tools = ['go'], more = '', keys = '' }: Written,
  into = test,
): Promise<void> {
  const provided = tools
    .map((tool) => `[[tools.provided]]\nname = "${tool}"\ndescription = "Does ${tool}"\n${keys}`)
    .join('\n')
  const toml = `[skill]\nname = "${name}"\n[runtime]\ntype = "${runtime}"\nentry = "${entry}"\n${provided}\n${more}`
  await writeSkill(into, name, { 'SKILL.md': skillText(name), 'skill.toml': toml, [entry]: code })
  expect(await into.request('POST', '/api/skills/reload')).toMatchObject({ body: { problems: [] } })
}
const python = (code: string): Written => ({ runtime: 'python', entry: 'run.py', code })
const alive = async (text: string): Promise<boolean> => {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')))
  return lines.some((line) => line.includes(text))
}

describe('a tool of a skill', () => {
  it('is a Python program that reads a tool and its input and answers JSON, as a tool of its own and by skill_execute', async () => {
    await write('sums', {
      ...python(
        'import json, sys, lib\ncall = json.load(sys.stdin)\nprint(json.dumps({"tool": call["tool"], "sum": lib.add(call["input"])}))\n',
      ),
      tools: ['add'],
      keys: 'input_schema = { required = ["a"], properties = { a = { type = "number" } } }\n',
    })
    await writeSkill(test, 'sums', { 'lib.py': 'def add(given):\n    return given["a"] + given["b"]\n' })
    expect(await callToolJson(test, agent, 'skill_sums_add', { a: 1, b: 2 })).toEqual({ tool: 'add', sum: 3 })
    expect(
      await callToolJson(test, agent, 'skill_execute', { skill: 'sums', tool: 'add', input: { a: 2, b: 2 } }),
    ).toEqual({ tool: 'add', sum: 4 })
    await test.say(agent, 'Add', { calls: [{ tool: 'skill_sums_add', args: { a: 5, b: 5 } }] }, 'Ten.')
    const sent = test.model.requests.at(-1)
    expect(JSON.stringify(sent?.turns)).toContain('10')
    expect(sent?.tools?.find(({ name }) => name === 'skill_sums_add')?.input).toMatchObject({ required: ['a'] })
    expect(await callTool(test, agent, 'skill_execute', { skill: 'sums', tool: 'sub' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('has no tool "sub"; it has add'),
    })
  })

  it('is a program of Node, whose plain text is a result', async () => {
    await write('shout', {
      runtime: 'node',
      entry: 'run.mjs',
      code: 'let text = ""; for await (const part of process.stdin) text += part\nconsole.log(JSON.parse(text).input.say.toUpperCase())\n',
    })
    expect(await callToolJson(test, agent, 'skill_shout_go', { say: 'hello' })).toEqual({ result: 'HELLO' })
  })

  it('is a WebAssembly module with fuel', async () => {
    await write('guest', { runtime: 'wasm', entry: 'skill.wasm', code: guest({ execute: echo }) })
    expect(await callToolJson(test, agent, 'skill_guest_go', { a: 1 })).toEqual({ tool: 'go', input: { a: 1 } })
    await write('endless', {
      runtime: 'wasm',
      entry: 'skill.wasm',
      code: guest({ execute: [0x03, 0x40, 0x0c, 0, 0x0b, 0x42, 0] }),
    })
    expect(await callTool(test, agent, 'skill_endless_go')).toMatchObject({
      failed: true,
      text: expect.stringContaining('fuel_exhausted'),
    })
  })

  it('is a shell script that a person approves, by its own name only', async () => {
    await write('script', { runtime: 'shell', entry: 'run.sh', code: 'read line; echo "got $line"\n' })
    const turn = test.say(agent, 'Go', { calls: [{ tool: 'skill_script_go', args: { a: 1 } }] }, 'Done.')
    const waiting = await eventually(async () => {
      const { body } = await test.request<Json>('GET', '/api/approvals?status=pending')
      expect(JSON.stringify(body)).toContain('skill_script_go')
      return (body.approvals ?? body).find(
        (each: Json) => each.tool_name === 'skill_script_go' || each.tool === 'skill_script_go',
      )
    })
    expect(waiting).toMatchObject({ risk_level: 'critical' })
    await test.request('POST', `/api/approvals/${waiting.id}/approve`, {})
    await turn
    expect(JSON.stringify(test.model.requests.at(-1)?.turns)).toContain('got {')
    expect(await callTool(test, agent, 'skill_execute', { skill: 'script', tool: 'go' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('needs the approval of a person'),
    })
    const meek = await test.spawn('meek', '[capabilities]\ntools = ["*"]\n')
    expect(await callTool(test, meek, 'skill_execute', { skill: 'script', tool: 'go' })).toMatchObject({
      text: expect.stringContaining('may not use'),
    })
  })

  it('goes with its skill, and is gone for agents that do not have the skill', async () => {
    await write('brief', python('print("{}")\n'))
    const without = await test.spawn('without', 'skills = ["sums"]\n[capabilities]\ntools = ["*"]\n')
    await test.say(without, 'Hello', 'Hello.')
    const names = test.model.requests.at(-1)?.tools?.map(({ name }) => name) ?? []
    expect(names).toContain('skill_sums_add')
    expect(names).not.toContain('skill_brief_go')
    await write('brief', { ...python('print("{}")\n'), tools: ['come'] })
    expect(test.registered().tools).toContain('skill_brief_come')
    expect(test.registered().tools).not.toContain('skill_brief_go')
  })
})

describe('a tool that fails', () => {
  it.each([
    [{}, 'the value lacks "count"'],
    [{ count: 'two' }, 'count must be integer'],
    [{ count: 0 }, 'count is below minimum 1'],
    [{ count: 1, words: ['a', 2] }, 'words[1] must be string'],
  ])('is not run with %j, and is told which argument is wrong', async (input, fault) => {
    const schema =
      '{ required = ["count"], properties = { count = { type = "integer", minimum = 1 }, ' +
      'words = { type = "array", items = { type = "string" } } } }'
    await write('strict', { ...python('open("output/ran", "w")\n'), keys: `input_schema = ${schema}\n` })
    const text = `go of the skill "strict" was not run, because its arguments do not fit: ${fault}`
    expect(await callTool(test, agent, 'skill_strict_go', input)).toMatchObject({ failed: true, text })
    const executed = { skill: 'strict', tool: 'go', input }
    expect(await callTool(test, agent, 'skill_execute', executed)).toMatchObject({ failed: true, text })
  })

  it.each([
    [
      'with an exit code and what it wrote',
      'import sys\nsys.exit("no such table")\n',
      /^go of the skill "bad" failed: exit code 1\nno such table/,
    ],
    ['by writing too much', 'print("x" * 20000)\n', /it wrote more than 10000 bytes/],
    ['by writing without an end', 'while True: print("x" * 1000)\n', /it wrote more than 10000 bytes/],
    ['by a signal', 'import os\nos.kill(os.getpid(), 9)\n', /failed: (?:it was ended by SIGKILL|exit code 137)/],
    ['by deep JSON, which is text then', 'print("[" * 5000)\n', /"result":"\[\[/],
  ])('says so %s', async (_how, code, text) => {
    await write('bad', python(code))
    expect((await callTool(test, agent, 'skill_bad_go')).text).toMatch(text)
  })

  it('is ended with all it started when it takes too long', async () => {
    await using hasty = await startSkills({ config: { plugins: { skills: { timeout_secs: 1 } } } })
    const code = 'import subprocess, time\nsubprocess.Popen(["sleep", "4242"])\ntime.sleep(4242)\n'
    await write('late', python(code), hasty)
    const id = await hasty.spawn('waiter')
    expect((await callTool(hasty, id, 'skill_late_go')).text).toContain('it took longer than 1 seconds')
    expect(await alive('sleep\x004242')).toBe(false)
  })

  it('is named in the log and counted, and leaves nothing behind', async () => {
    await write('broken', python('import sys\nsys.exit(3)\n'))
    for (let round = 0; round < 3; round++) await callTool(test, agent, 'skill_broken_go')
    expect(
      test.log.some(
        (line) =>
          line.includes('go of the skill "broken" failed: exit code 3') ||
          line.includes('go of the skill \\"broken\\" failed: exit code 3'),
      ),
    ).toBe(true)
    const counted = await test.metrics('svc_skill_calls_total')
    expect([...counted].find(([name]) => name.includes('broken') && name.includes('failed'))?.[1]).toBe(3)
    expect(test.registered().tools).toContain('skill_broken_go')
    expect(await readdir(join(test.home, 'data', 'skill-runs')).catch(() => [])).toEqual([])
  })

  it('ends with the turn that called it', async () => {
    await write('slow', python('import subprocess\nsubprocess.run(["sleep", "4343"])\n'))
    const stop = new AbortController()
    const call = test.callTool('skill_slow_go', {}, { agentId: agent, signal: stop.signal })
    await eventually(async () => expect(await alive('sleep\x004343')).toBe(true))
    stop.abort(new Error('stopped'))
    await expect(call).rejects.toThrow('stopped')
    await eventually(async () => expect(await alive('sleep\x004343')).toBe(false))
  })
})

describe('what a program of a skill may use', () => {
  it('is its own files and named variables, and neither the home, nor other variables, nor the network', async () => {
    process.env['TOLD_TEST_GIVEN'] = 'given-value'
    process.env['TOLD_TEST_OTHER'] = 'other-value'
    const code = `
import os, json, socket
out = {"env": sorted(k for k in os.environ if "TOLD_TEST" in k), "mode": os.environ.get("TOLD_TEST_MODE"), "given": os.environ.get("TOLD_TEST_GIVEN")}
try:
    out["home"] = os.listdir(${JSON.stringify(test.home)})
except OSError as error:
    out["home"] = type(error).__name__
try:
    socket.create_connection(("127.0.0.1", 1), 2)
except OSError as error:
    out["net"] = "refused"
open("kept.txt", "w").write("x")
print(json.dumps(out))
`
    await write('curious', {
      ...python(code),
      more: '[config.TOLD_TEST_GIVEN]\nrequired = true\n[config.TOLD_TEST_MODE]\ndefault = "soft"\n',
    })
    const seen = await callToolJson(test, agent, 'skill_curious_go')
    expect(seen).toMatchObject({
      env: ['TOLD_TEST_GIVEN', 'TOLD_TEST_MODE'],
      mode: 'soft',
      given: '***',
      net: 'refused',
    })
    expect(JSON.stringify(seen.home)).not.toContain('config')
    expect(await readdir(join(test.home, 'skills', 'curious'))).not.toContain('kept.txt')
    await write('needy', { ...python('print("{}")\n'), more: '[config.TOLD_TEST_MISSING]\nrequired = true\n' })
    expect((await callTool(test, agent, 'skill_needy_go')).text).toContain('needs the variable TOLD_TEST_MISSING')
    delete process.env['TOLD_TEST_GIVEN']
    delete process.env['TOLD_TEST_OTHER']
  })

  it('is values of the vault, which no route shows and which go with the skill', async () => {
    const code = 'import os\nprint(os.environ.get("TESTED_TOKEN", "none"), len(os.environ.get("TESTED_TOKEN", "")))\n'
    await write('keyed', {
      ...python(code),
      more: '[config.TESTED_TOKEN]\ndescription = "Of the service"\nrequired = true\n',
    })
    const path = '/api/skills/keyed/config'
    const variable = { name: 'TESTED_TOKEN', description: 'Of the service', required: true }
    const before = { skill: 'keyed', variables: [{ ...variable, has_value: false, source: null }] }
    expect(await test.request('GET', path)).toMatchObject({ status: 200, body: before })
    const missing = await callTool(test, agent, 'skill_keyed_go')
    expect(missing.text).toContain('svc skill config set keyed TESTED_TOKEN')
    const put = (values: object) => test.request<Json>('PUT', path, { values })
    expect(await put({ TESTED_TOKN: 'x' })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('did you mean "TESTED_TOKEN"') } },
    })
    const set = await put({ TESTED_TOKEN: 'value-of-the-vault' })
    expect(set).toMatchObject({ status: 200, body: { variables: [{ has_value: true, source: 'vault' }] } })
    expect(JSON.stringify(set.body)).not.toContain('value-of-the-vault')
    expect(await test.request('GET', '/api/skills/keyed')).toMatchObject({
      body: { variables: [{ ...variable, has_value: true }] },
    })
    expect(await callToolJson(test, agent, 'skill_keyed_go')).toEqual({ result: '*** 18' })
    // A plugin that is replaced while the daemon runs has the same tools and values.
    await test.reload()
    expect(await test.request('GET', path)).toMatchObject({ status: 200 })
    expect(await callToolJson(test, agent, 'skill_keyed_go')).toEqual({ result: '*** 18' })
    expect(await test.request('DELETE', path)).toMatchObject({ status: 200, body: before })
    await put({ TESTED_TOKEN: 'value-of-the-vault' })
    expect(await test.request('DELETE', '/api/skills/keyed')).toMatchObject({ status: 200 })
    await write('keyed', { ...python(code), more: '[config.TESTED_TOKEN]\n' })
    expect(await callToolJson(test, agent, 'skill_keyed_go')).toEqual({ result: 'none 0' })
  })

  it('is no variable of svc, and no value that was entered for the skill whose name it takes', async () => {
    const config = '/api/skills/api-tester/config'
    await test.request('PUT', config, { values: { API_TESTER_TOKEN: 'of-the-one-that-comes-with-svc' } })
    await write('api-tester', {
      ...python('import os\nprint(len(os.environ.get("API_TESTER_TOKEN", "")))\n'),
      more: '[config.API_TESTER_TOKEN]\n',
    })
    expect(await callToolJson(test, agent, 'skill_api_tester_go')).toEqual(0)
    await removeSkill(test, 'api-tester')
    await test.request('POST', '/api/skills/reload')
    expect(await test.request('GET', config)).toMatchObject({
      body: { variables: expect.arrayContaining([expect.objectContaining({ has_value: true })]) as unknown },
    })
    await writeSkill(test, 'curious', {
      'skill.toml':
        '[skill]\nname = "curious"\ndescription = "x"\nenv_passthrough = ["SVC_VAULT_KEY"]\n' +
        '[runtime]\ntype = "python"\nentry = "run.py"\n[[tools.provided]]\nname = "go"\ndescription = "x"\n',
      'run.py': '',
    })
    expect(await test.request('POST', '/api/skills/reload')).toMatchObject({
      body: { problems: [{ error: expect.stringContaining('is a variable of svc or of its database') }] },
    })
    await removeSkill(test, 'curious')
  })

  it('is copies of the files that its arguments name, and files it leaves in output', async () => {
    const copy = 'import json, sys\ncall = json.load(sys.stdin)["input"]\ntext = open(call["path"]).read()\n'
    await write('reader', {
      ...python(`${copy}print(text)\n`),
      keys: 'files = ["path"]\n',
      more: '[requirements]\ncapabilities = ["files:read"]\n',
    })
    await callTool(test, agent, 'file_write', { path: 'notes/a.txt', content: 'first' })
    expect(await callToolJson(test, agent, 'skill_reader_go', { path: 'notes/a.txt' })).toEqual({ result: 'first' })
    expect(await callTool(test, agent, 'skill_reader_go', { path: '../../svc.db' })).toMatchObject({ failed: true })
    await write('writer', {
      ...python(`${copy}open("output/b.txt", "w").write(text + "!")\nopen(call["path"], "w").write("changed")\n`),
      keys: 'files = ["path"]\n',
      more: '[requirements]\ncapabilities = ["files:write"]\n',
    })
    expect((await callTool(test, agent, 'skill_writer_go', { path: 'notes/a.txt' })).text).toContain(
      'Files in the workspace: skills/writer/b.txt',
    )
    expect((await callTool(test, agent, 'file_read', { path: 'skills/writer/b.txt' })).text).toContain('first!')
    expect((await callTool(test, agent, 'file_read', { path: 'notes/a.txt' })).text).toContain('first')
    // Its 500 MB take no room on the disk, and are not read.
    await write('sparse', {
      ...python('open("output/big", "w").truncate(500_000_000)\n'),
      more: '[requirements]\ncapabilities = ["files:write"]\n',
    })
    expect((await callTool(test, agent, 'skill_sparse_go')).text).toContain('at most 10485760 bytes')
    await write('messy', {
      ...python('for name in "abc": open(f"output/{name}", "w").write(name)\n'),
      more: '[requirements]\ncapabilities = ["files:write"]\n',
    })
    expect((await callTool(test, agent, 'skill_messy_go')).text).toContain(
      'more than plugins.skills.max_output_files (2)',
    )
  })

  it.each([
    ['output is a link', 'os.rmdir("output")\nos.symlink(place, "output")\n'],
    ['a folder in output is a link', 'os.symlink(place, "output/in")\n'],
    ['a file in output is a link', 'os.symlink(place + "/secret.txt", "output/secret.txt")\n'],
    ['output is a file', 'os.rmdir("output")\nopen("output", "w").write("x")\n'],
  ])('is nothing of another folder, where %s', async (what, code) => {
    const place = await mkdtemp(join(tmpdir(), 'svc-elsewhere-'))
    await writeFile(join(place, 'secret.txt'), 'of another folder')
    const name = `links-${what.replaceAll(' ', '-')}`
    await write(name, {
      ...python(`import os\nplace = ${JSON.stringify(place)}\n${code}print("made")\n`),
      more: '[requirements]\ncapabilities = ["files:write"]\n',
    })
    const { text } = await callTool(test, agent, `skill_${name.replaceAll('-', '_')}_go`)
    expect(text).not.toContain('Files in the workspace')
    const { body } = await test.request<Json>('GET', `/api/agents/${agent}/files`)
    expect(JSON.stringify(body)).not.toContain('secret.txt')
    await rm(place, { recursive: true })
  })

  it('is the hosts that it and the manifest of the agent name', async () => {
    await using server = createServer((_request, response) => response.end('page'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve))
    const url = `http://127.0.0.2:${(server.address() as AddressInfo).port}/`
    const code =
      'import json, sys, urllib.request\n' +
      'print(urllib.request.urlopen(json.load(sys.stdin)["input"]["url"], timeout=4).read().decode())\n'
    const reaching = (host: string): Written => ({
      ...python(code),
      more: `[requirements]\ncapabilities = ["network:${host}"]\n`,
    })
    await write('fetcher', reaching('api.example.org'))
    expect((await callTool(test, agent, 'skill_fetcher_go', { url })).text).toMatch(
      /exit code 1[\s\S]*"fetcher" does not name 127\.0\.0\.2/,
    )
    await write('fetcher', reaching('127.0.0.2'))
    expect(await callToolJson(test, agent, 'skill_fetcher_go', { url })).toEqual({ result: 'page' })
    const elsewhere = await test.spawn('elsewhere', '[capabilities]\ntools = ["*"]\nnetwork = ["example.org"]\n')
    expect((await callTool(test, elsewhere, 'skill_fetcher_go', { url })).text).toMatch(
      /exit code 1[\s\S]*capabilities\.network of this agent does not allow/,
    )
    const offline = await test.spawn('offline', '[capabilities]\ntools = ["*"]\n')
    await test.say(offline, 'Hello', 'Hello.')
    expect(test.model.requests.at(-1)?.tools?.map(({ name }) => name)).not.toContain('skill_fetcher_go')
  })
})
