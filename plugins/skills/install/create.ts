import { renderToml } from 'svc/internal'
import type { ArchivedFile } from 'svc/internal'
import type { Runtime } from '../manifest/skill.ts'
import { TEST_FILE } from '../testing/cases.ts'

interface NewSkill {
  readonly name: string
  readonly runtime: Exclude<Runtime, 'wasm'>
  readonly description: string
  readonly tags: readonly string[]
  readonly text: string | undefined
}
interface Program {
  readonly entry: string
  readonly code: string
}
/** Each answers what it was given. */
const programs: Readonly<Record<Exclude<NewSkill['runtime'], 'prompt_only'>, Program>> = {
  python: {
    entry: 'run.py',
    code:
      'import json, sys\n\ncall = json.load(sys.stdin)\n' +
      'print(json.dumps({"greeting": f"Hello, {call[\'input\'][\'name\']}!"}))\n',
  },
  node: {
    entry: 'run.mjs',
    code:
      "import { json } from 'node:stream/consumers'\n\nconst { input } = await json(process.stdin)\n" +
      'console.log(JSON.stringify({ greeting: `Hello, ${input.name}!` }))\n',
  },
  shell: { entry: 'run.sh', code: '# Standard input is one line: {"tool": …, "input": …}\ncat\n' },
}

/** The files of a new skill, with a test that passes. */
export function newSkill({ name, runtime, description, tags, text }: NewSkill): readonly ArchivedFile[] {
  const toFile = (file: string, content: string): ArchivedFile => ({ name: file, bytes: Buffer.from(content) })
  const front = [
    '---',
    `name: ${name}`,
    `description: ${JSON.stringify(description)}`,
    'metadata:',
    '  version: "0.1.0"',
  ]
  if (tags.length > 0) front.push(`  tags: ${JSON.stringify(tags.join(', '))}`)
  const body =
    text ?? `# ${name}\n\n${description}\n\nWrite here what an expert does: first looks, commands, pitfalls, checks.`
  const skill = toFile('SKILL.md', [...front, '---', '', body, ''].join('\n'))
  if (runtime === 'prompt_only') return [skill, toFile(TEST_FILE, toJson([{ text: name }]))]
  const { entry, code } = programs[runtime]
  const manifest = renderToml({
    skill: { name },
    runtime: { type: runtime, entry },
    tools: {
      provided: [
        {
          name: 'greet',
          description: 'Greets somebody by name.',
          input_schema: { required: ['name'], properties: { name: { type: 'string' } } },
        },
      ],
    },
  })
  const expected = runtime === 'shell' ? { tool: 'greet' } : { greeting: 'Hello, Ada!' }
  return [
    skill,
    toFile('skill.toml', manifest),
    toFile(entry, code),
    toFile(TEST_FILE, toJson([{ tool: 'greet', input: { name: 'Ada' }, expect: expected }])),
  ]
}
const toJson = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`
