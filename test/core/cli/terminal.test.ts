import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Sqlite from 'better-sqlite3'
import stringWidth from 'string-width'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { startTerminal } from '../../support/terminal.ts'
import type { TestTerminal } from '../../support/terminal.ts'
import { main } from './process.ts'

const launcher = fileURLToPath(new URL('../../fixtures/plugins/launcher', import.meta.url))
const PASTE = (text: string): string => `\u001b[200~${text}\u001b[201~`
const CTRL_C = '\u0003'
vi.setConfig({ testTimeout: 20_000 })
let home: string
let stage: ChatStage
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-terminal-'))
  stage = await openChat({
    home,
    config: { plugins: { paths: [launcher], launcher: { file: join(home, 'launches.log') } } },
  })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const chat = async (
  options: { env?: NodeJS.ProcessEnv; args?: string; cols?: number; rows?: number; home?: string } = {},
) => {
  const terminal = startTerminal(
    `exec ${process.execPath} ${main} chat --home ${options.home ?? home} ${options.args ?? ''}`,
    options,
  )
  if (!options.args?.includes('-m')) await terminal.shows(/Talking to [^]*\n>$/)
  return terminal
}
/** The environment of a command whose clock is an hour ahead as soon as there is this file. */
function laterOnce(file: string): NodeJS.ProcessEnv {
  const code = `import { existsSync } from 'node:fs'
const { now } = Date
Date.now = () => now() + (existsSync(${JSON.stringify(file)}) ? 3_600_000 : 0)`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}
const sent = (): string => String(stage.fake.requests.at(-1)?.body.messages?.at(-1)?.content)

/** The name of an agent that nobody has talked to. */
async function newAgent(): Promise<string> {
  const name = `agent-${Math.trunc(performance.now() * 1000)}`
  await stage.spawn(name)
  return name
}

const idOf = async (name: string): Promise<string> =>
  (await stage.host.json('GET', '/api/agents')).body.find((agent: { name: string }) => agent.name === name).id

describe('what is typed', () => {
  it('a pasted text of several lines is one message', async () => {
    await using terminal = await chat()
    stage.fake.script({ text: 'read' })
    const before = stage.fake.requests.length
    terminal.type(PASTE('def f():\r\treturn "↵"\r\rf()\r'))
    await terminal.shows(/> def f\(\):↵/)
    terminal.type(' what is this?\r')
    await terminal.shows(/\nread\n/)
    expect(stage.fake.requests.length).toBe(before + 1)
    expect(sent()).toBe('def f():\n\treturn "↵"\n\nf() what is this?')
    terminal.type('/exit\r')
    expect(await terminal.ended).toEqual({ code: 0, signal: null })
    expect(terminal.raw).toContain('\u001b[?2004l')
  })

  it('a long one is shown by its size and sent whole; keys in it are text or nothing', async () => {
    await using terminal = await chat()
    stage.fake.script({ text: 'a lot' })
    const long = Array.from({ length: 300 }, (_, at) => `line ${at}`).join('\n')
    terminal.type(PASTE(`${long}\u0003\u001b[A`))
    await terminal.shows(/\[pasted text 1, 300 lines\]/)
    terminal.type('\r')
    await terminal.shows(/\na lot\n/)
    expect(sent()).toBe(`${long}[A`)
  })

  it('a path or a pasted text that begins with a slash is no command', async () => {
    await using terminal = await chat()
    stage.fake.script({ text: 'one' }, { text: 'two' })
    terminal.type('/etc/passwd is what?\r')
    await terminal.shows(/\none\n/)
    expect(sent()).toBe('/etc/passwd is what?')
    terminal.type(`${PASTE('/usage\nis this a command?')}\r`)
    await terminal.shows(/\ntwo\n/)
    expect(sent()).toBe('/usage\nis this a command?')
  })

  it('Ctrl-C clears the line, then stops the answer, then leaves', async () => {
    await using terminal = await chat()
    terminal.type('half a thou')
    await terminal.shows(/> half a thou/)
    terminal.type(CTRL_C)
    await terminal.hides(/half a thou/)
    const hand = byHand()
    stage.fake.script({ text: hand.text })
    terminal.type('go on\r')
    hand.say('Once upon')
    await terminal.shows(/Once upon/)
    terminal.type('typed ahead')
    await terminal.shows(/> typed ahead/)
    terminal.type(CTRL_C)
    await terminal.hides(/typed ahead/)
    terminal.type(CTRL_C)
    await terminal.shows(/\(stopped\)/)
    hand.end()
    terminal.type(CTRL_C)
    await terminal.shows(/Ctrl-C again leaves\./)
    terminal.type(CTRL_C)
    expect((await terminal.ended).code).toBe(0)
  })

  it('what is sent during an answer waits, and its line stays whole while the answer grows', async () => {
    await using terminal = await chat()
    const hand = byHand()
    stage.fake.script({ text: hand.text }, { text: 'the second answer' })
    terminal.type('first\r')
    hand.say('One ')
    await terminal.shows(/One/)
    terminal.type('second')
    await terminal.shows(/One\n.*\n> second$/m)
    hand.say('two ')
    await terminal.shows(/One two\n.*\n> second$/m)
    terminal.type(' thing\r')
    await terminal.shows(/> second thing\n/)
    hand.say('three.')
    hand.end()
    await terminal.shows(/One two three\.\n[^]*the second answer/)
    expect(sent()).toBe('second thing')
  })
})

describe('keys', () => {
  const UP = '\u001b[A'

  it('the arrow keys bring back what earlier runs were told, which only this user can read', async () => {
    const name = await newAgent()
    const file = join(home, 'chat-history')
    {
      await using first = await chat({ args: name })
      stage.fake.script({ text: 'noted' })
      first.type(`${PASTE('one\ntwo')} lines\r`)
      await first.shows(/\nnoted\n/)
      first.type('/usage\r')
      await first.shows(/This session: /)
      first.type('/exit\r')
      await first.ended
    }
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    await using second = await chat({ args: name })
    stage.fake.script({ text: 'again' })
    second.type(UP + UP + UP)
    await second.shows(/> one↵two lines$/)
    second.type('\r')
    await second.shows(/\nagain\n/)
    expect(sent()).toBe('one\ntwo lines')
  })

  it('the history is bounded', async () => {
    const file = join(home, 'chat-history')
    await writeFile(file, Array.from({ length: 2000 }, (_, at) => `line ${at}\n`).join(''))
    await using terminal = await chat({ args: await newAgent() })
    terminal.type(UP)
    await terminal.shows(/> line 1999$/)
    expect((await readFile(file, 'utf8')).split('\n')).toHaveLength(501)
  })

  it('Tab completes commands, lists them where there are several, and names of agents after /agent', async () => {
    await stage.spawn('zebra-one')
    await using terminal = await chat({ args: await newAgent() })
    terminal.type('/com\t')
    await terminal.shows(/> \/compact$/)
    terminal.type(CTRL_C)
    await terminal.hides(/> \/compact$/)
    terminal.type('/a\t')
    await terminal.shows(/\/agent {2}\/agents {2}\/approvals {2}\/approve[^]*\n> \/a$/)
    terminal.type('gent zeb\t')
    await terminal.shows(/> \/agent zebra-one$/)
    terminal.type('\r')
    await terminal.shows(/Talking to "zebra-one"/)
  })

  it('Tab completes paths of this machine, and lists their names', async () => {
    const folder = join(home, 'papers')
    await mkdir(join(folder, 'notes-old'), { recursive: true })
    await writeFile(join(folder, 'notes.md'), '')
    await using terminal = await chat({ args: await newAgent(), cols: 120 })
    terminal.type(`read ${folder}/n\t`)
    await terminal.shows(/> read \S+\/papers\/notes$/)
    terminal.type('\t')
    await terminal.shows(/^notes-old\/ {2}notes\.md$/m)
    terminal.type('.\t')
    await terminal.shows(/> read \S+\/papers\/notes\.md$/)
  })

  it('Tab does nothing in a message, and is text in a paste', async () => {
    await using terminal = await chat({ args: await newAgent() })
    stage.fake.script({ text: 'ok' })
    terminal.type('no\t')
    await terminal.shows(/> no$/)
    terminal.type(`${PASTE('a\tb\t')}\r`)
    await terminal.shows(/\nok\n/)
    expect(sent()).toBe('noa\tb')
  })
})

describe('what is shown', () => {
  it('headings, tables and links are drawn, and wide characters keep their columns', async () => {
    await using terminal = await chat({ args: await newAgent() })
    stage.fake.script({
      text: '## 見出し\n\n| 名前 | n |\n|---|---|\n| 日本 | 1 |\n| ab | 22 |\n\nSee [the page](https://example.com/x) 👍\n',
    })
    terminal.type('write\r')
    const [shown] = await terminal.shows(/見出し\n[^]*\(\d+ tokens in/)
    const columns = shown.split('\n').filter((line) => /日本|ab /.test(line))
    expect(columns).toHaveLength(2)
    // Two columns a character: the figures of both rows begin in the same one.
    expect(stringWidth(columns[0]?.replace(/1.*$/, '') ?? '')).toBe(stringWidth(columns[1]?.replace(/22.*$/, '') ?? ''))
    expect(shown).toContain('https://example.com/x')
  })

  it('a terminal that gets narrower or wider shows the answer and the line once', async () => {
    await using terminal = await chat({ args: await newAgent() })
    const hand = byHand()
    stage.fake.script({ text: hand.text })
    terminal.type('write\r')
    hand.say('One two three four five six seven eight nine ten eleven twelve.\n\nSecond 日本語')
    await terminal.shows(/Second 日本語\n[⠋-⠿] answering/)
    terminal.type('typed ahead')
    await terminal.shows(/> typed ahead$/)
    await terminal.resize(40, 30)
    hand.say(' grows')
    await terminal.shows(/Second 日本語 grows\n[⠋-⠿] answering.*\n> typed ahead$/)
    await terminal.resize(100, 30)
    hand.say(' on.')
    hand.end()
    await terminal.shows(/Second 日本語 grows on\.\n+\(\d+ tokens in[^]*\)\n> typed ahead$/)
    expect(terminal.screen().match(/Second/g)).toHaveLength(1)
    expect(terminal.screen().match(/twelve/g)).toHaveLength(1)
    expect(terminal.screen().match(/typed ahead/g)).toHaveLength(1)
    expect(terminal.screen()).not.toMatch(/[⠋-⠿]/)
  })

  it('a line under each answer says what it took', async () => {
    await using terminal = await chat({ args: await newAgent() })
    stage.fake.script({ text: 'hi' })
    terminal.type('hello\r')
    await terminal.shows(/\nhi\n+\(\d+ tokens in, \d+ out, (?:\$[\d.]+|price unknown), openai\/\S+ \d+ s\)/)
  })

  it('/sessions goes back to an earlier one and shows how it ended', async () => {
    await using terminal = await chat({ args: await newAgent() })
    stage.fake.script({ text: 'the **old** answer' }, { text: 'the new answer' })
    terminal.type('old question\r')
    await terminal.shows(/the old answer/)
    terminal.type('/new\r')
    await terminal.shows(/New session/)
    terminal.type('new question\r')
    await terminal.shows(/the new answer/)
    terminal.type('/sessions 2\r')
    await terminal.shows(/Back in session [^]*\n> old question\n+the old answer\n/)
  })

  it('Markdown is drawn while it comes, once, and fits the terminal', async () => {
    await using terminal = await chat({ cols: 40 })
    const hand = byHand()
    stage.fake.script({ text: hand.text })
    terminal.type('write\r')
    hand.say('# Title\n\nSome **bold** words that are longer than the terminal is wide.\n\n- one\n- tw')
    await terminal.shows(/• tw/)
    hand.say('o\n\n```js\nlet a = 1\n```\n')
    hand.end()
    await terminal.shows(
      /Title\n\nSome bold words that are longer than the\nterminal is wide\.\n\n• one\n• two\n\n {4}let a = 1\n+\(.*tokens in.*[^]*\)\n>$/,
    )
    expect(terminal.screen().match(/Title/g)).toHaveLength(1)
    expect(terminal.raw).toContain('\u001b[1mbold\u001b[22m')
  })

  it('Markdown as it was written in a pipe', async () => {
    stage.fake.script({ text: '# Title\n\n- **bold** `code`' })
    await using piped = await chat({ args: '-m hi | cat' })
    await piped.ended
    expect(piped.raw).toBe('# Title\r\n\r\n- **bold** `code`\r\n')
  })

  it('without colours where NO_COLOR says so, and without any drawing in a dumb terminal', async () => {
    await using plain = await chat({ env: { NO_COLOR: '1' } })
    stage.fake.script({ text: '**bold** `code`' })
    plain.type('write\r')
    await plain.shows(/\nbold `code`/)
    expect(plain.raw.split('\u001b').filter((piece) => /^\[\d+m/.test(piece))).toEqual([])
    stage.fake.script({ text: '**bold**' })
    await using dumb = await chat({ env: { TERM: 'dumb' }, args: '-m hi' })
    await dumb.ended
    expect(dumb.raw).toBe('**bold**\r\n')
  })

  it('an answer cannot control the terminal', async () => {
    await using terminal = await chat()
    stage.fake.script({
      text: 'a\u001b]0;owned\u0007b \u001b[2J&#27;[2J [x](http://a/\u001b]8;;) `\u001b[31m` \u009b31m\n\n```\n\u001b[H\n```\n',
    })
    terminal.type('write\r')
    await terminal.shows(/\\u001b\[H/)
    expect(terminal.raw).not.toContain('\u001b]')
    expect(terminal.raw).not.toContain('\u001b[2J')
    expect(terminal.raw).not.toContain('\u001b[31m')
    expect(terminal.raw).not.toContain('\u009b')
  })

  it('one message draws its answer too, and leaves nothing else', async () => {
    stage.fake.script({ text: ['**Hel', 'lo**'] })
    await using terminal = await chat({ args: '-m hi' })
    expect((await terminal.ended).code).toBe(0)
    expect(terminal.screen()).toBe('Hello')
  })

  it('/sessions, /usage and /compact are those of the page', async () => {
    await using terminal = await chat()
    terminal.type('/usage\r')
    await terminal.shows(/This session: \d+ calls of a model/)
    terminal.type('/sessions\r')
    await terminal.shows(/\* 1\. .* messages/)
    terminal.type('/compact\r')
    await terminal.shows(/No compaction needed|Session compacted/)
    terminal.type('/help\r')
    await terminal.shows(/\/sessions \[number\]: [^]*\/agents: the agents[^]*Ctrl-C clears what is typed/)
  })
})

describe('what others say in the conversation', () => {
  it('appears at once, with its answer and what that took; what is typed here appears once', async () => {
    const name = await newAgent()
    const id = await idOf(name)
    await using terminal = await chat({ args: name })
    const answer = byHand()
    stage.fake.script({ text: 'heard you' }, { text: answer.text })
    terminal.type('from here\r')
    await terminal.shows(/heard you\n+\(\d+ tokens in/)
    const asked = stage.host.json('POST', `/api/agents/${id}/message`, { message: 'from the page' })
    await terminal.shows(/\n> from the page\n/)
    answer.say('hello ')
    await terminal.shows(/\n> from the page\n+hello/)
    answer.say('page')
    answer.end()
    await asked
    await terminal.shows(/\n> from the page\n+hello page\n+\(\d+ tokens in, \d+ out, [^)]*openai\/\S+ \d+ s\)/)
    expect(terminal.screen().match(/from here|heard you/g)).toEqual(['from here', 'heard you'])
    terminal.type('/exit\r')
    expect(await terminal.ended).toEqual({ code: 0, signal: null })
  })

  it('is shown in the conversation that another one makes the active one', async () => {
    const name = await newAgent()
    const id = await idOf(name)
    await using terminal = await chat({ args: name })
    const answer = byHand()
    stage.fake.script({ text: 'first' }, { text: answer.text })
    terminal.type('one\r')
    await terminal.shows(/first\n+\(\d+ tokens in/)
    await stage.host.json('POST', `/api/agents/${id}/sessions`, {})
    await terminal.shows(/another conversation is the active one now/)
    const asked = stage.host.json('POST', `/api/agents/${id}/message`, { message: 'two' })
    await terminal.shows(/> two\n/)
    answer.say('second')
    answer.end()
    await asked
    await terminal.shows(/> two\n+second\n+\(\d+ tokens in/)
  })
})

describe('what is waited for', () => {
  it('a pause before another try is said while it lasts, and what was thought is folded into a line', async () => {
    await using terminal = await chat()
    const hand = byHand()
    stage.fake.script(
      { status: 503, headers: { 'retry-after': '2' }, body: '{"error":{"message":"busy"}}' },
      { reasoning: ['First I look.', ' Then I leap.'], text: hand.text },
    )
    terminal.type('/think on\r')
    await terminal.shows(/Extended thinking is on/)
    terminal.type('jump\r')
    await terminal.shows(/\(trying again at .* UTC, attempt 2: [^]*503/)
    await terminal.shows(/First I look\. Then I leap\.\n[⠋-⠿] the model is thinking/)
    hand.say('Jumped.')
    hand.end()
    await terminal.shows(/\(thought for \d+ s; \/thoughts shows it\)\n\nJumped\.\n+\(\d+ tokens in, [^]*\)\n>$/)
    expect(terminal.screen()).not.toContain('First I look')
    terminal.type('/thoughts\r')
    await terminal.shows(/First I look\. Then I leap\.\n/)
    terminal.type('/think perhaps\r')
    await terminal.shows(/\/think on or \/think off/)
  })
})

describe('a message that failed', () => {
  it('that is sent again is shown as it is answered, and can be stopped', async () => {
    const name = `lucky-${Math.trunc(performance.now())}`
    await stage.spawn(name)
    await using terminal = await chat({ args: name })
    const hand = byHand()
    stage.fake.script({ status: 400, body: '{"error":{"message":"no such thing"}}' }, { text: hand.text })
    terminal.type('try this\r')
    await terminal.shows(/svc: [^]*\/retry sends the message\s+again/)
    terminal.type('/retry\r')
    hand.say('Half of')
    await terminal.shows(/Half of\n[⠋-⠿] answering/)
    hand.say(' it')
    await terminal.shows(/Half of it\n[⠋-⠿] answering/)
    terminal.type(CTRL_C)
    await terminal.shows(/Half of it[^]*\(stopped\)/)
    hand.end()
  })

  it('is sent again with /retry, or taken away with /drop', async () => {
    const name = `unlucky-${Math.trunc(performance.now())}`
    await stage.spawn(name)
    await using terminal = await chat({ args: name })
    const refused = { status: 400, body: '{"error":{"message":"no such thing"}}' }
    stage.fake.script(refused, { text: 'now it **works**' })
    terminal.type('try this\r')
    await terminal.shows(/svc: [^]*\/retry sends the message\s+again/)
    terminal.type('/retry\r')
    await terminal.shows(/\nnow it works\n/)
    expect(sent()).toBe('try this')
    stage.fake.script(refused)
    terminal.type('and this\r')
    await terminal.shows(/and this\n[^]*\/retry sends the message\s+again/)
    terminal.type('/drop\r')
    await terminal.shows(/> \/drop\n.*\w/)
    terminal.type('/retry\r')
    await terminal.shows(/No message of this session has failed/)
  })
})

describe('approvals', () => {
  const digger = async (): Promise<TestTerminal> => {
    const name = `digger-${Math.trunc(performance.now())}`
    await stage.spawn(name)
    return await chat({ args: name })
  }
  const launch = { calls: [{ id: 'c1', name: 'launch', args: { label: 'one' } }] }

  it('one sentence, what would be done on a line of its own, and y lets it be done', async () => {
    await using terminal = await digger()
    stage.fake.script(launch, { text: 'launched' })
    terminal.type('do it\r')
    await terminal.shows(
      /digger-\d+ wants to .* and waits for your\s+answer \((?:10 min|9 min \d+ s) left[^]*\n\n {4}launch\n {4}label: one\n\n[^]* y {2}yes, once/,
    )
    terminal.type('d\r')
    await terminal.shows(/risk +high[^]*"label": "one"/)
    terminal.type('y\r')
    await terminal.shows(/approved: launch label: one[^]*\nlaunched/)
  })

  it('n does not, and a letter that was typed before the question counts for nothing', async () => {
    await using terminal = await digger()
    stage.fake.script({ text: 'first' }, launch, { text: 'as you like' })
    terminal.type('hello\r')
    await terminal.shows(/\nfirst\n/)
    terminal.type('do it\r')
    terminal.type('y')
    await terminal.shows(/wants to/)
    terminal.type('\r')
    await terminal.shows(/That was typed before the question was shown/)
    terminal.type('n\r')
    await terminal.shows(/rejected: launch[^]*as you like/)
  })

  it('a few words after n are the reason, which the agent reads', async () => {
    await using terminal = await digger()
    stage.fake.script(launch, { text: 'then the copy' })
    terminal.type('do it\r')
    await terminal.shows(/ n {2}no; a few words after it tell the agent why/)
    terminal.type('n use the copy\r')
    await terminal.shows(/rejected: launch label: one \(the agent reads: use the copy\)[^]*then the copy/)
    expect(JSON.stringify(stage.fake.requests.at(-1)?.body.messages)).toContain('use the copy')
    stage.fake.script(launch, { text: 'not at all' })
    terminal.type('once more\r')
    await terminal.shows(/once more[^]* n {2}no; a few words/)
    terminal.type('/reject never again\r')
    await terminal.shows(/\(the agent reads: never again\)[^]*not at all/)
  })

  it.each(['s', 'a'])(
    '%s allows it for the conversation, where the same call is not asked about again',
    async (letter) => {
      await using terminal = await digger()
      stage.fake.script(launch, { text: 'launched' }, launch, { text: 'again' })
      terminal.type('do it\r')
      await terminal.shows(/ s {2}yes, for this conversation[^]*your answer: y, s or n/)
      terminal.type(`${letter}\r`)
      await terminal.shows(/approved for this conversation: launch label: one[^]*\nlaunched/)
      terminal.type('once more\r')
      await terminal.shows(/\nagain/)
      expect(terminal.screen().match(/wants to/g)).toHaveLength(1)
    },
  )

  it('a question that expires while it is shown is gone, and what is typed then is a message', async () => {
    await using stageOfItsOwn = await openChat({
      config: { plugins: { paths: [launcher], launcher: { file: join(home, 'expired.log') } } },
    })
    const isOver = join(stageOfItsOwn.host.home, 'is-over')
    await using terminal = await chat({ home: stageOfItsOwn.host.home, env: laterOnce(isOver) })
    stageOfItsOwn.fake.script(launch, { text: 'a pity' }, { text: 'to you too' }, { text: 'why?' })
    terminal.type('do it\r')
    const [shown] = await terminal.shows(/your answer: y, s or n .*, .* s left/)
    await terminal.hides(new RegExp(RegExp.escape(shown)))
    await terminal.shows(/your answer: y, s or n .*, .* s left/)
    terminal.type('hm\r')
    await terminal.shows(/sent after this answer; the question takes y, s or n/)
    await writeFile(isOver, '')
    const database = new Sqlite(join(stageOfItsOwn.host.home, 'data/svc.db'))
    database.exec("UPDATE approvals_request SET expires_at = '2026-01-01T00:00:00.000Z'")
    database.close()
    // The daemon finds it when it is asked for it.
    await stageOfItsOwn.host.json('GET', '/api/approvals')
    await terminal.shows(/Not answered in time, which counts as a rejection\.[^]*a pity[^]*to you too/)
    terminal.type('y\r')
    await terminal.shows(/\nwhy\?/)
    expect(stageOfItsOwn.fake.requests.at(-1)?.body.messages?.at(-1)?.content).toBe('y')
    expect(terminal.screen()).not.toMatch(/your answer:|approved/)
  })

  it('svc approval watch takes no letter typed too early, and counts down', async () => {
    const ask = async (word: string): Promise<string> => {
      const payload = { command: 'make', args: [word] }
      const request = { agent_id: stage.agent, tool_name: 'shell_exec', payload }
      return (await stage.host.json('POST', '/api/approvals', request)).body.id
    }
    await using terminal = startTerminal(`exec ${process.execPath} ${main} approval watch --home ${home}`)
    await terminal.shows(/Waiting for approvals/)
    terminal.type('y')
    await terminal.shows(/> y$/)
    const id = await ask('early')
    const [, shown = ''] = await terminal.shows(/make early[^]*(your answer: .* left)\n> y$/)
    await terminal.hides(new RegExp(RegExp.escape(shown)))
    terminal.type('\r')
    await terminal.shows(/That was typed before the question was shown/)
    expect((await stage.host.json('GET', `/api/approvals/${id}`)).body.status).toBe('pending')
    terminal.type('what\r')
    await terminal.shows(/y or n; d shows details/)
    terminal.type('s\r')
    await terminal.shows(/This can be allowed once only: y or n/)
    const second = await ask('later')
    terminal.type('y\r')
    await terminal.shows(/approved: make early[^]*make later/)
    await stage.host.json('POST', `/api/approvals/${second}/reject`, {})
    await terminal.shows(/Answered elsewhere/)
    await terminal.hides(/your answer:/)
    terminal.type('y\r')
    await terminal.shows(/Nothing waits for an answer/)
  })

  it('svc approval watch asks about each, and leaves with Ctrl-C', async () => {
    const { body } = await stage.host.json('POST', '/api/approvals', {
      agent_id: stage.agent,
      tool_name: 'shell_exec',
      payload: { command: 'make', args: ['all', 'of it'] },
    })
    await using terminal = startTerminal(`exec ${process.execPath} ${main} approval watch --home ${home}`)
    await terminal.shows(/assistant wants to [^]*\n\n {4}make all "of it"\n[^]* n {2}no/)
    terminal.type('n\r')
    await terminal.shows(/rejected: make all "of it"/)
    expect((await stage.host.json('GET', `/api/approvals/${body.id}`)).body.status).toBe('rejected')
    terminal.type(CTRL_C)
    expect((await terminal.ended).code).toBe(130)
  })
})
