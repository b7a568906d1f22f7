import { hash } from 'node:crypto'
import { AgentCard } from '@a2a-js/sdk'
import { matchesEtag } from 'svc/internal'
import { Refusal, reply } from 'svc/sdk'
import type { Reply, RequestFacts } from 'svc/sdk'
import { toLegacyCard } from './cards.ts'
import type { CardFacts } from './cards.ts'
import { toAgentCard } from './wire-card.ts'

type Facts = Pick<RequestFacts, 'header'>

/** A card in the shape of the version that the client names. */
export async function showCard(facts: CardFacts, { header }: Facts): Promise<Reply> {
  const version = header('a2a-version')?.trim() ?? ''
  if (/^(?:0\.3(?:\.\d+)?)?$/.test(version)) return replyCard(toLegacyCard(facts), header)
  if (!/^1\.0(?:\.\d+)?$/.test(version))
    throw new Refusal('invalid_request', `A2A-Version: ${version.slice(0, 32)} is not supported; 1.0 and 0.3 are`)
  return replyCard(AgentCard.toJSON(toAgentCard(facts)), header)
}
function replyCard(card: unknown, header: Facts['header']): Reply {
  const body = JSON.stringify(card)
  const etag = `"${hash('sha256', body, 'base64url').slice(0, 22)}"`
  const headers = { vary: 'A2A-Version', 'cache-control': 'private, max-age=60', etag }
  if (matchesEtag(header('if-none-match'), etag)) return reply(null, headers, 304)
  return reply(body, { ...headers, 'content-type': 'application/json' })
}
