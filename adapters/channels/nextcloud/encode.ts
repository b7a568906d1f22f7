import { createHash, randomBytes } from 'node:crypto'
import { omitUndefined } from 'svc/sdk'
import { breakMentions, signContent } from 'svc/channels'
import type { OutboundMessage } from 'svc/channels'

/** What notifies everybody, a group or a team: `getMentions` of lib/private/Comments/Comment.php of the server. */
const MASS_MENTION = /@(?="?(?:all(?![\w-])|(?:federated_)?(?:group|team)\/))/gi

export function encodeText(text: string): string {
  return breakMentions(text, MASS_MENTION)
}

/** The body of a message. The server only stores the reference, so that the message can be found again. */
export function encodeMessage({ id, replyTo }: OutboundMessage, text: string) {
  const answered = Number(replyTo)
  return omitUndefined({
    message: text,
    replyTo: Number.isSafeInteger(answered) && answered > 0 ? answered : undefined,
    referenceId: referenceOf(id),
  })
}

export function referenceOf(id: string): string {
  return createHash('sha256').update(id).digest('hex')
}

/** The headers of a request of a bot: not its body is signed, but the text or the emoji in it. */
export function signRequest(secret: string, signed: string): Readonly<Record<string, string>> {
  const random = randomBytes(32).toString('hex')
  return {
    'x-nextcloud-talk-bot-random': random,
    'x-nextcloud-talk-bot-signature': signContent(random + signed, { secret }),
  }
}
