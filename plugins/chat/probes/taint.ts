import type { Tools } from 'svc/sdk'
import type { Finding, ProbeCase } from '../../security/contract.ts'
import { LABELS } from '../../sessions/contract.ts'
import { carriedBy, union } from '../safety/labels.ts'
import type { Carried, Label } from '../safety/labels.ts'
import { argumentHash, checkFlow } from '../safety/taint.ts'

/**
 * The labels that each kind of tool has to refuse (security facts 1.2). Repeated here, so that a change of the tools
 * fails the probe.
 */
const rows: readonly (readonly [refuses: readonly Label[], tools: readonly string[]])[] = [
  [
    ['ExternalNetwork', 'UntrustedAgent', 'UserInput'],
    ['shell_exec', 'process_start'],
  ],
  [
    ['Secret', 'Pii'],
    ['web_fetch', 'web_search'],
  ],
  [['Secret'], ['agent_send', 'task_post']],
  [['ExternalNetwork', 'UntrustedAgent'], ['agent_spawn']],
]
/** Tools with answers from outside. */
const sources: Readonly<Record<string, Label>> = {
  web_fetch: 'ExternalNetwork',
  web_search: 'ExternalNetwork',
  shell_exec: 'ExternalNetwork',
  agent_send: 'UntrustedAgent',
}
const args = { command: 'echo $(cat notes)' }

/** Sends every label through the guard, checks the installed tools, and plants a secret in disguise in a call. */
export async function probe(tools: Tools, plantedSecret: string): Promise<Finding> {
  return {
    cases: [...toolCases(tools), ...flowCases(), ...disguised(tools, plantedSecret)],
    evidence: "labels follow text through a turn, not through a model's mind: what it reads marks all that it says",
  }
}

function carried(...labels: readonly Label[]): Carried {
  return new Map(labels.map((label) => [label, 'a probe']))
}
function check(refuses: readonly string[], ...labels: readonly Label[]) {
  return checkFlow({ tool: 'probe', args, refuses, carried: carried(...labels) })
}

function toolCases(tools: Tools): readonly ProbeCase[] {
  const cases: ProbeCase[] = []
  for (const [refuses, names] of rows) {
    for (const label of LABELS) {
      const refused = refuses.includes(label)
      cases.push({
        name: `${label} ${refused ? 'is refused' : 'passes'} at a tool like ${names[0]}`,
        passed: check(refuses, label).allowed !== refused,
      })
    }
    for (const name of names) {
      const installed = tools.find(name)
      if (installed)
        cases.push({
          name: `${name} refuses ${refuses.join(', ')}`,
          passed: refuses.every((label) => installed.refuses?.includes(label)),
        })
    }
  }
  for (const [name, label] of Object.entries(sources)) {
    const installed = tools.find(name)
    if (installed)
      cases.push({ name: `answers of ${name} carry ${label}`, passed: installed.labels?.includes(label) === true })
  }
  return cases
}

function flowCases(): readonly ProbeCase[] {
  const mixed = union(carried(), carried('ExternalNetwork'), carried('Secret'))
  const window = carriedBy([
    { blocks: [{ type: 'text' }] },
    {
      blocks: [
        { type: 'result', labels: ['ExternalNetwork'], tool: 'web_fetch' },
        { type: 'text', labels: ['UserInput'] },
      ],
    },
  ])
  const refusal = check(['Secret'], 'Secret')
  const hash = argumentHash('probe', args)
  const approved = checkFlow({
    tool: 'probe',
    args,
    refuses: ['UserInput'],
    carried: carried('UserInput'),
    approved: new Map([[hash, 'operator']]),
  })
  const other = checkFlow({
    tool: 'probe',
    args: { command: 'another' },
    refuses: ['UserInput'],
    carried: carried('UserInput'),
    approved: new Map([[hash, 'operator']]),
  })
  return [
    {
      name: 'clean and labelled text together carry the labels of both',
      passed: mixed.size === 2 && mixed.has('Secret'),
    },
    {
      name: 'a window carries the labels of all its blocks',
      passed: [...window.keys()].toSorted().join() === 'ExternalNetwork,UserInput',
    },
    {
      name: 'a refusal names label and source and no value',
      passed:
        !refusal.allowed &&
        refusal.text.includes('Secret') &&
        refusal.text.includes('a probe') &&
        !refusal.text.includes(args.command),
    },
    {
      name: 'an approval lets exactly these arguments pass and leaves a record',
      passed: approved.allowed && approved.declassified.length === 1 && approved.declassified[0]?.argumentHash === hash,
    },
    { name: 'and no others', passed: !other.allowed },
  ]
}

/** A known secret in the usual forms of exfiltration. */
function disguised(tools: Tools, secret: string): readonly ProbeCase[] {
  tools.protectSecret(secret)
  const bytes = Buffer.from(secret)
  const forms: Readonly<Record<string, string>> = {
    'as it is': secret,
    'in base64': bytes.toString('base64'),
    'in base64 behind other text': Buffer.from(`x${secret}y`).toString('base64url'),
    'in hex': bytes.toString('hex'),
    'percent-encoded': [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
    backwards: [...secret].toReversed().join(''),
    'in part': secret.slice(3, 25),
  }
  return [
    ...Object.entries(forms).map(([form, text]) => ({
      name: `a secret ${form} in an address is found`,
      passed: tools.containsSecret({ url: `https://example.com/?q=${text}` }),
    })),
    {
      name: 'an address without one passes',
      passed: !tools.containsSecret({ url: 'https://example.com/?q=an-ordinary-question-of-some-length' }),
    },
  ]
}
