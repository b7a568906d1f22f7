import * as v from 'valibot'
import type { ChannelLink } from 'svc/channels'
import { robotOf } from './config.ts'
import type { DingTalkConfig } from './config.ts'
import { decodeMessage } from './decode.ts'
import type { Sessions } from './sessions.ts'
import { RobotMessage } from './wire.ts'

/** Passes on a message to the robot. Settles when it is durable. */
export async function receiveMessage(link: ChannelLink<DingTalkConfig>, sessions: Sessions, raw: unknown) {
  const message = v.safeParse(RobotMessage, raw)
  if (!message.success) {
    link.log.warn('DingTalk sent a message in a form that cannot be read')
    return
  }
  const { robotCode: robot } = message.output
  if (robot && robot !== robotOf(link.config)) {
    link.log.warn('DingTalk sent a message to another robot', { robot })
    return
  }
  const decoded = decodeMessage(message.output)
  if (!decoded) return
  sessions.note(decoded.chat.id, message.output)
  await link.receive(decoded)
}
