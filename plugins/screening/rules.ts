import type { FindingLevel } from './contract.ts'

export interface Rule {
  readonly name: string
  readonly level: FindingLevel
  /** Groups of words in this order, each at most `within` words after the one before (default: four). */
  readonly groups: readonly ReadonlySet<string>[]
  readonly within?: number
}
const any = (words: string): ReadonlySet<string> => new Set(words.split(' '))

const override = any('ignore ignoring disregard disregarding forget override overrule bypass neglect')
const trueEarlier = any('previous prior above earlier preceding former foregoing initial original system your')
const earlier = new Set([...trueEarlier, 'all', 'any', 'every'])
const orders = any(
  'instruction instructions prompt prompts rule rules directive directives guideline guidelines command commands ' +
    'programming constraints restrictions safeguards guardrails',
)
const secrets = any(
  'key keys apikey password passwords secret secrets token tokens credential credentials cookie cookies ' +
    'env environment conversation transcript history prompt instructions files memories',
)
const sending = any('send post upload exfiltrate forward leak transmit email submit deliver')

/**
 * Families of phrases, with a few in other languages. None of this is a security boundary: an attacker who knows the
 * list avoids it. A finding informs the operator, and what follows needs approval.
 */
export const rules: readonly Rule[] = [
  { name: 'override of instructions', level: 'critical', groups: [override, earlier, orders], within: 3 },
  {
    name: 'override of instructions',
    level: 'critical',
    groups: [override, any('everything anything all whatever what'), any('previous prior above before earlier')],
    within: 4,
  },
  {
    name: 'override of instructions',
    level: 'critical',
    groups: [any('do'), any('not'), any('follow obey'), earlier, orders],
    within: 3,
  },
  {
    name: 'override of instructions',
    level: 'critical',
    groups: [any('dont'), any('follow obey'), earlier, orders],
    within: 3,
  },
  {
    name: 'new instructions',
    level: 'critical',
    groups: [
      any('your'),
      any('new updated real actual true'),
      any('instructions task mission objective goal directive'),
      any('is are'),
    ],
    within: 2,
  },
  {
    name: 'new instructions',
    level: 'critical',
    groups: [any('system'), any('prompt instruction instructions'), any('override overridden')],
    within: 1,
  },
  {
    name: 'another role',
    level: 'critical',
    groups: [any('you'), any('are'), any('now'), any('dan jailbroken unrestricted unfiltered uncensored evil free')],
    within: 2,
  },
  {
    name: 'another role',
    level: 'critical',
    groups: [
      any('you'),
      any('are'),
      any('now'),
      any('a an in'),
      any('unrestricted unfiltered uncensored different developer dan jailbreak god debug admin root maintenance'),
      any('ai assistant model mode agent bot persona character'),
    ],
    within: 2,
  },
  {
    name: 'another role',
    level: 'critical',
    groups: [any('you'), any('are'), any('no'), any('longer'), any('bound restricted an a limited')],
    within: 1,
  },
  {
    name: 'another role',
    level: 'critical',
    groups: [
      any('pretend act behave respond'),
      any('as'),
      any('if'),
      any('you'),
      any('have had'),
      any('no'),
      any('restrictions rules limits guidelines filters'),
    ],
    within: 2,
  },
  {
    name: 'instructions shown',
    level: 'critical',
    groups: [
      any('reveal print repeat output show'),
      any('your the'),
      any('system initial hidden original'),
      any('prompt instructions message'),
    ],
    within: 2,
  },
  {
    name: 'override of instructions (de)',
    level: 'critical',
    groups: [
      any('ignoriere ignorieren vergiss missachte'),
      any('alle die deine vorherigen bisherigen'),
      any('anweisungen instruktionen befehle regeln'),
    ],
  },
  {
    name: 'override of instructions (fr)',
    level: 'critical',
    groups: [
      any('ignore ignorez oublie oubliez'),
      any('les toutes tes vos'),
      any('instructions consignes regles'),
      any('precedentes anterieures'),
    ],
  },
  {
    name: 'override of instructions (es)',
    level: 'critical',
    groups: [
      any('ignora ignore olvida omite'),
      any('las todas tus'),
      any('instrucciones ordenes reglas'),
      any('anteriores previas'),
    ],
  },
  {
    name: 'secrets sent away',
    level: 'warning',
    groups: [sending, secrets, any('http https url webhook server endpoint address email to')],
    within: 8,
  },
  { name: 'secrets sent away', level: 'warning', groups: [any('base64 encode'), any('and'), sending], within: 3 },
  { name: 'a shell command', level: 'warning', groups: [any('rm'), any('rf fr')], within: 1 },
  {
    name: 'a shell command',
    level: 'warning',
    groups: [any('curl wget'), any('http https'), any('sh bash zsh python')],
    within: 40,
  },
  { name: 'a shell command', level: 'warning', groups: [any('chmod'), any('777 x')], within: 1 },
  {
    name: 'a shell command',
    level: 'warning',
    groups: [any('sudo'), any('rm sh bash su dd mkfs chmod chown')],
    within: 2,
  },
  { name: 'another role', level: 'warning', groups: [any('you'), any('are'), any('now'), any('a an')], within: 1 },
  {
    name: 'kept from the user',
    level: 'warning',
    groups: [
      any('do'),
      any('not'),
      any('tell mention inform reveal'),
      any('the this user'),
      any('user human operator to'),
    ],
    within: 2,
  },
]

/** Markers that delimit roles and tool results in prompts, as they read in normalised text. */
export const markers: readonly (readonly [name: string, marker: string])[] = [
  ...[
    '<|im_start|>',
    '<|im_end|>',
    '<|system|>',
    '<|user|>',
    '<|assistant|>',
    '<|endoftext|>',
    '<|eot_id|>',
    '<|start_header_id|>',
    '[inst]',
    '[/inst]',
    '<<sys>>',
    '<</sys>>',
    '<system>',
    '</system>',
    '<system-reminder>',
    '### system:',
    '### instruction:',
  ].map((marker) => ['a role that is made up', marker] as const),
  ...[
    '<tool_result',
    '</tool_result',
    '<tool_response',
    '<function_results',
    '</function_results',
    '<function_calls',
    '<tool_use',
    '[tool_result',
    '"role": "system"',
    '"role":"system"',
  ].map((marker) => ['the answer of a tool that is made up', marker] as const),
  ...['忽略之前的指令', '忽略以前的指令', '忽略所有指令', '無視して', '以前の指示を無視', '이전 지시를 무시'].map(
    (marker) => ['override of instructions', marker.normalize('NFKD')] as const,
  ),
]
