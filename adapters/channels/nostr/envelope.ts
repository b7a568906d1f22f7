import * as nip04 from 'nostr-tools/nip04'
import * as nip44 from 'nostr-tools/nip44'
import { createSeal, createWrap } from 'nostr-tools/nip59'
import { getEventHash, verifyEvent } from 'nostr-tools/pure'
import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import type { Identity } from './identity.ts'
import { Event, KIND, Rumor } from './wire.ts'

/**
 * The message in an event for the bot. Throws when it is not for the bot, was altered, or is not of whom it names as
 * its author.
 */
export function openEnvelope(event: Event, identity: Identity): Rumor {
  if (!verifyEvent({ ...event })) throw new Error('the signature is wrong')
  return event.kind === KIND.legacyMessage ? openLegacy(event, identity) : openWrap(event, identity)
}

/** The wrap of a message for one reader. It is another one each time; the id of the message stays. */
export function wrapFor(rumor: Rumor, reader: string, { privateKey }: Identity): Event {
  return createWrap(createSeal(rumor, privateKey, reader), reader)
}

/** A message of NIP-04: who writes to whom is public. */
export function sealLegacy(rumor: Rumor, reader: string, identity: Identity): Event {
  const { created_at, kind, tags } = rumor
  return identity.sign({
    created_at,
    kind,
    tags,
    content: nip04.encrypt(identity.privateKey, reader, rumor.content),
  })
}

function openWrap(wrap: Event, identity: Identity): Rumor {
  if (wrap.kind !== KIND.wrap) throw new Error(`an event of kind ${wrap.kind}`)
  const seal = v.parse(Event, decrypt(wrap, identity))
  if (seal.kind !== KIND.seal) throw new Error('there is no seal in the wrap')
  if (!verifyEvent({ ...seal })) throw new Error('the signature of the seal is wrong')
  const rumor = v.parse(Rumor, decrypt(seal, identity))
  // Otherwise everybody could write in the name of everybody.
  if (rumor.pubkey !== seal.pubkey) throw new Error('the message is not of whom sealed it')
  if (rumor.id !== getEventHash(rumor)) throw new Error('the id of the message is wrong')
  return rumor
}

function decrypt({ pubkey, content }: Rumor, { privateKey }: Identity): unknown {
  return readJson(nip44.decrypt(content, nip44.getConversationKey(privateKey, pubkey)))
}

function openLegacy(event: Event, identity: Identity): Rumor {
  const { sig: _, ...rumor } = event
  // The bot reads its own messages with the key of the other side.
  const other =
    event.pubkey === identity.publicKey ? (event.tags.find(([name]) => name === 'p')?.[1] ?? '') : event.pubkey
  return { ...rumor, content: nip04.decrypt(identity.privateKey, other, event.content) }
}
