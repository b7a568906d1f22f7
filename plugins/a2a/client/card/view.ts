import { canonicalJson } from 'svc/internal'
import { isObject, UpstreamFailure } from 'svc/sdk'
import { createHash } from 'node:crypto'
import type { Screening } from '../../../screening/contract.ts'
import { isSecureUrl } from '../address.ts'
import type { ClientSettings } from '../config.ts'
import type { CardSignature, CardSkill, CardView, Endpoint } from '../model.ts'

type Fields = Readonly<Record<string, unknown>>
type Limits = Pick<ClientSettings, 'card_max_skills' | 'card_max_text'>

const MAX_NAME = 100
const MAX_SHORT = 200
const MAX_LIST = 20
const BINDINGS: ReadonlySet<string> = new Set(['JSONRPC', 'HTTP+JSON'])

const textOf = (value: unknown, max: number): string =>
  typeof value === 'string'
    ? value
        .toWellFormed()
        .replaceAll(/\p{C}+/gu, ' ')
        .trim()
        .slice(0, max)
    : ''
const listOf = (value: unknown, max: number): readonly Fields[] =>
  Array.isArray(value) ? value.filter(isObject).slice(0, max) : []
const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.slice(0, MAX_LIST).map((each) => textOf(each, MAX_NAME)) : []

/** The addresses of a card that can be used, in its order. */
export function endpointsOf(card: Fields): readonly Endpoint[] {
  return listOf(card['supportedInterfaces'], MAX_LIST)
    .map((each) => ({
      url: textOf(each['url'], 2_048),
      protocol: textOf(each['protocolBinding'], MAX_NAME).toUpperCase(),
      version: textOf(each['protocolVersion'], MAX_NAME) || '0.3',
    }))
    .filter(({ url, protocol }) => BINDINGS.has(protocol) && isSecureUrl(url))
}

/** What may be shown of a card, in the form of protocol 1.0. Throws `UpstreamFailure` when nothing can be sent to it. */
export async function viewCard(
  card: Fields,
  signature: CardSignature,
  { host, limits, screening }: { readonly host: string; readonly limits: Limits; readonly screening: Screening },
): Promise<CardView> {
  const endpoints = endpointsOf(card)
  if (endpoints.length === 0)
    throw new UpstreamFailure(
      host,
      `the card of ${host} names no address that can be used: JSONRPC or HTTP+JSON, over https`,
      { reason: 'malformed', retry: 'never' },
    )
  const warnings: string[] = []
  const screened = async (what: string, text: string): Promise<string> => {
    const { level, findings } = await screening.screen(text)
    if (level !== 'critical' && level !== 'warning') return text
    const rules = [...new Set(findings.map(({ rule }) => rule))].slice(0, 5).join(', ')
    warnings.push(`${what} looks like instructions to a model (${level}: ${rules})`)
    return level === 'critical' ? '[kept back: it looks like instructions to a model]' : text
  }
  const capabilities = isObject(card['capabilities']) ? card['capabilities'] : {}
  const provider = isObject(card['provider']) ? card['provider'] : {}
  const schemes = isObject(card['securitySchemes']) ? Object.keys(card['securitySchemes']) : []
  if (endpoints.some(({ url }) => new URL(url).host !== host))
    warnings.push(`messages go to ${endpoints.map(({ url }) => new URL(url).host).join(', ')}, its card is at ${host}`)
  if (signature.state === 'invalid') warnings.push('its signature is wrong')
  return {
    name: await screened('its name', textOf(card['name'], MAX_NAME) || host),
    description: await screened('its description', textOf(card['description'], limits.card_max_text)),
    version: await screened('its version', textOf(card['version'], MAX_NAME)),
    provider: await screened('its provider', textOf(provider['organization'], MAX_SHORT)),
    endpoints,
    skills: await viewSkills(listOf(card['skills'], limits.card_max_skills), limits, screened),
    security: schemes.slice(0, MAX_LIST).map((each) => textOf(each, MAX_NAME)),
    streaming: capabilities['streaming'] === true,
    push_notifications: capabilities['pushNotifications'] === true,
    signature,
    warnings,
  }
}

async function viewSkills(
  skills: readonly Fields[],
  limits: Limits,
  screened: (what: string, text: string) => Promise<string>,
): Promise<readonly CardSkill[]> {
  const viewed: CardSkill[] = []
  for (const [at, skill] of skills.entries()) {
    const what = `skill ${at + 1}`
    viewed.push({
      id: await screened(`the id of ${what}`, textOf(skill['id'], MAX_NAME)),
      name: await screened(`the name of ${what}`, textOf(skill['name'], MAX_NAME)),
      description: await screened(`the description of ${what}`, textOf(skill['description'], limits.card_max_text)),
      tags: (await screened(`the tags of ${what}`, textsOf(skill['tags']).join(' '))).split(' ').filter(Boolean),
    })
  }
  return viewed
}

/** What a person trusts. A key that cannot be had for a while makes no other card. */
function trustedFacts(view: CardView): Fields {
  const { name, endpoints, skills, security, signature } = view
  return { name, endpoints, skills, security, keys: signature.keys, forged: signature.state === 'invalid' }
}
/** A card with another fingerprint is another agent until a person has looked at it. */
export function fingerprintOf(view: CardView): string {
  return createHash('sha256')
    .update(canonicalJson(trustedFacts(view)))
    .digest('hex')
    .slice(0, 32)
}

export interface CardDifference {
  readonly field: string
  readonly before: unknown
  readonly after: unknown
}
/** What is different since a person trusted it. */
export function differences(before: CardView, after: CardView): readonly CardDifference[] {
  const [old, now] = [trustedFacts(before), trustedFacts(after)]
  return Object.keys(now)
    .filter((field) => canonicalJson(old[field]) !== canonicalJson(now[field]))
    .map((field) => ({ field, before: old[field], after: now[field] }))
}
