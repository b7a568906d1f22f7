import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkArguments, listFlags } from '../../../core/cli/arguments.ts'
import { loadRegistry } from '../../../core/cli/command-registry.ts'
import type { CommandEntry, CommandTree } from '../../../core/cli/command.ts'
import { runHere } from '../../core/cli/here.ts'
import { commandsIn, documentBlocks, documentPages, readDocument } from '../../support/documents.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

interface Line {
  readonly at: string
  /** What comes after `svc`. */
  readonly words: readonly string[]
}

/** Every `svc …` and `npx svc …` of the blocks. */
const lines: readonly Line[] = documentBlocks('sh', 'bash', 'console').flatMap(({ at, language, text }) => {
  const typed = language === 'console' ? [...text.matchAll(/^\$ (.*)$/gm)].map(([, line]) => line).join('\n') : text
  return commandsIn(typed).flatMap((words) => {
    const start = words.findIndex((word) => !/^(?:\w+=.*|npx)$/.test(word))
    return words[start] === 'svc' ? [{ at, words: words.slice(start + 1) }] : []
  })
})

/** Commands that only read, and what a new home lacks for those that are not run. */
const reads =
  /^(?:a2a (?:list|card|tasks)|(?:session|device|schedule|task|trigger|goal|plugin|hand|integration|browser|agent) list|template (?:list|show)|queue (?:status|list)|comms topology|channels bindings$|providers$|models$|status|config (?:get|schema)|integration available|hand show|media$|audit verify|skill (?:list|config list)|memory search|completion|migrate$|doctor)/
const needs: Readonly<Record<string, string>> = {
  'skill config list word-count': 'the skill that the page makes',
  'agent list --home /tmp/try': 'the home that the page makes',
  migrate: 'a home of another system',
  doctor: 'bubblewrap, and a disk that is not full',
}

let host: TestHost
beforeAll(async () => {
  host = await startHost({ config: { pairing: { enabled: true } } })
})
afterAll(() => host[Symbol.asyncDispose]())

describe('the commands of the documents', () => {
  it('are found', () => {
    expect(lines.length).toBeGreaterThan(120)
  })

  it('exist, with these flags and arguments', async () => {
    const { commands } = await loadRegistry({ home: host.home, configFile: undefined })
    const wrong: string[] = []
    for (const { at, words } of lines) {
      try {
        const { path, entry, rest } = find(words, commands)
        const loaded = await entry?.load?.()
        if (!loaded) throw new Error(`there is no command ${words.join(' ')}`)
        checkArguments(path, loaded.default.args, rest)
      } catch (error) {
        wrong.push(`${at}: svc ${words.join(' ')}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    expect(wrong).toEqual([])
  })

  it('exist where a sentence names them, with its flags', async () => {
    const { commands } = await loadRegistry({ home: host.home, configFile: undefined })
    const wrong: string[] = []
    for (const page of documentPages())
      for (const [, text = ''] of readDocument(page).matchAll(/`(?:npx )?svc ([a-z][^`\n]*)`/g)) {
        const [words = []] = commandsIn(text)
        const { entry, rest } = find(words, commands)
        const { args = {} } = (await entry?.load?.())?.default ?? {}
        const known = new Set(listFlags(args).flatMap(({ name, aliases }) => [name, ...aliases]))
        const flags = rest.filter((word) => word.startsWith('--')).map((word) => word.slice(2).replace(/=.*/s, ''))
        const unknown = flags.filter((flag) => flag !== 'help' && !known.has(flag))
        const isGroup = entry?.load === undefined
        if (!entry || (isGroup && rest.length > 0) || unknown.length > 0) wrong.push(`${page}: svc ${text}`)
      }
    expect(wrong).toEqual([])
  })

  it('run, if they only read', async () => {
    const failed: string[] = []
    const wanted = new Map(lines.map(({ at, words }) => [words.join(' '), { at, words }]))
    for (const [line, { at, words }] of wanted) {
      if (!reads.test(line) || line in needs) continue
      const { code, stderr } = await runHere([...words, '--home', host.home])
      if (code !== 0) failed.push(`${at}: svc ${line}: exit code ${code}: ${stderr}`)
    }
    expect(failed).toEqual([])
  })

  it('are what the list of those that are not run names', () => {
    const known = new Set(lines.map(({ words }) => words.join(' ')))
    expect(Object.keys(needs).filter((line) => !known.has(line))).toEqual([])
  })
})

function find(words: readonly string[], commands: CommandTree) {
  let tree: CommandTree | undefined = commands
  let entry: CommandEntry | undefined
  let at = 0
  for (; tree && at < words.length; at++) {
    const word: string = words[at] ?? ''
    // Groups may be named in the plural.
    const next: CommandEntry | undefined = tree[word] ?? (at === 0 ? tree[word.replace(/s$/, '')] : undefined)
    if (!next) break
    entry = next
    tree = next.commands
  }
  return { path: words.slice(0, at), entry, rest: words.slice(at) }
}
