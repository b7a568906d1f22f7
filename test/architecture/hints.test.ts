import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkArguments, listFlags } from '../../core/cli/arguments.ts'
import { loadBuiltIns } from '../../core/cli/built-ins.ts'
import type { CommandEntry, CommandTree } from '../../core/cli/command.ts'
import { coreCommands } from '../../core/cli/core-commands.ts'
import { root, sources } from './sources.ts'

interface Hint {
  readonly place: string
  readonly words: readonly string[]
}

/** Command lines in messages, with a word for each value that is put in. */
function hintsIn(path: string, text: string): Hint[] {
  if (!/^import [^;]*?\bcommand(?:Line|For)\b[^;]*? from '(?:svc\/|\.)/m.test(text)) return []
  const calls = [...text.matchAll(/\bcommand(?:Line|For)\((?:\w+(?:\.\w+)*, )?(?:'([^'\n]+)'|`([^`\n]+)`)/g)]
  return calls.map(([, plain, template]) => ({
    place: `${path}: ${plain ?? template ?? ''}`,
    words: (plain ?? template ?? '')
      .replaceAll(/\$\{[^{}]*\}|"[^"]*"/g, ' x ')
      .trim()
      .split(/ +/),
  }))
}

/** Command lines in the pages, where no program knows how they are typed. */
function hintsOfPages(): Hint[] {
  return globSync('plugins/*/pages/*.{html,js}', { cwd: root }).flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return [...text.matchAll(/<code>svc ([^<]+)<\/code>|'code', \{\}, 'svc ([^']+)'/g)].map(([, html, script]) => ({
      place: `${path}: ${html ?? script ?? ''}`,
      words: (html ?? script ?? '').trim().split(/ +/),
    }))
  })
}

/** Plugins may share a group. */
const tree: Record<string, CommandEntry> = { ...coreCommands }
for (const { commands = {} } of await loadBuiltIns())
  for (const [name, entry] of Object.entries(commands))
    tree[name] = { ...tree[name], ...entry, commands: { ...tree[name]?.commands, ...entry.commands } }
const hints = sources('core', 'plugins', 'adapters')
  .flatMap(({ path, text }) => hintsIn(path, text))
  .filter(({ words: [first = ''] }) => first !== 'x' && !/^[-<]/.test(first))
  .concat(hintsOfPages())

/** The command that a hint names, and the words after its name; `undefined` when there is no such command. */
async function commandOf({ words }: Hint) {
  let commands: CommandTree | undefined = tree
  let load: CommandEntry['load']
  let at = 0
  for (; at < words.length; at++) {
    const word: string = words[at] ?? ''
    if (!commands || !Object.hasOwn(commands, word)) break
    ;({ load, commands } = commands[word] ?? {})
  }
  const args = (await load?.())?.default.args
  return args && { args, path: words.slice(0, at), rest: words.slice(at) }
}
/** The flags of the command that a hint names; `undefined` when there is no such command. */
async function flagsOf(hint: Hint): Promise<ReadonlySet<string> | undefined> {
  const command = await commandOf(hint)
  return command && new Set(listFlags(command.args).flatMap(({ name, aliases }) => [name, ...aliases]))
}

it('every command that a message names is one, with flags that it has', async () => {
  const wrong = await Promise.all(
    hints.map(async (hint) => {
      const flags = await flagsOf(hint)
      const given = hint.words.flatMap((word) => /^--?([\w-]+)/.exec(word)?.[1] ?? [])
      return flags && given.every((flag) => flags.has(flag) || flag === 'help') ? [] : hint.place
    }),
  )
  expect(hints.length).toBeGreaterThan(100)
  expect(wrong.flat()).toEqual([])
})

it('every command that a message names has the arguments that it needs', async () => {
  const wrong = await Promise.all(
    hints.map(async (hint) => {
      const command = await commandOf(hint)
      if (!command || command.rest.includes('--help')) return []
      try {
        checkArguments(command.path, command.args, command.rest)
        return []
      } catch (error) {
        return `${hint.place}: ${String(error)}`
      }
    }),
  )
  expect(wrong.flat()).toEqual([])
})

it('every command that a daemon names can be told which home it is about', async () => {
  const ofDaemon = hints.filter(({ place }) => !/^core\/cli\/|^plugins\/[\w-]+\/(?:cli[/.]|pages\/)/.test(place))
  const wrong = await Promise.all(ofDaemon.map(async (hint) => ((await flagsOf(hint))?.has('home') ? [] : hint.place)))
  expect(wrong.flat()).toEqual([])
})
