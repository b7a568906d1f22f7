import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { Contact, Media, Message } from './wire.ts'

/** The message of a person; `undefined` for kinds without a content, such as reactions. */
export function decodeMessage(message: Message, contacts: readonly Contact[]): InboundMessage | undefined {
  const text = textOf(message)
  const attachments = attachmentsOf(message)
  if (text === '' && attachments.length === 0) return undefined
  const { id, from, context } = message
  const name = contacts.find(({ wa_id }) => wa_id === from)?.profile?.name
  return {
    id,
    chat: { id: from, kind: 'direct' },
    sender: { id: from, name: name || from, handle: `+${from}` },
    text,
    attachments,
    mentionsBot: true,
    ...omitUndefined({
      replyTo: context?.id,
      isForwarded: context?.forwarded || context?.frequently_forwarded || undefined,
    }),
    sentAt: isoTime(Number(message.timestamp) * 1000),
    // The typing indicator belongs to a message.
    replyContext: { messageId: id },
  }
}

function textOf({ text, button, interactive, location, ...message }: Message): string {
  const choice = interactive?.button_reply ?? interactive?.list_reply
  if (choice) return choice.id
  if (button) return button.payload ?? button.text
  if (location)
    return [location.name, `Location: ${location.latitude}, ${location.longitude}`].filter(Boolean).join('\n')
  const { image, video, document } = message
  return text?.body ?? image?.caption ?? video?.caption ?? document?.caption ?? ''
}

function attachmentsOf({ image, sticker, audio, video, document }: Message): readonly InboundAttachment[] {
  const known: readonly (readonly [InboundAttachment['kind'], Media | undefined, string])[] = [
    ['image', image ?? sticker, 'image'],
    ['audio', audio, 'audio'],
    ['video', video, 'video'],
    ['file', document, 'document'],
  ]
  return known.flatMap(([kind, media, name]) =>
    media
      ? [
          {
            kind,
            name: media.filename ?? `${name}${endingOf(media)}`,
            mime: media.mime_type,
            reference: { id: media.id },
          },
        ]
      : [],
  )
}

function endingOf({ mime_type }: Media): string {
  const [, ending] = /^\w+\/(jpeg|png|webp|gif|ogg|mpeg|mp4|aac|amr|3gpp|pdf)\b/.exec(mime_type) ?? []
  return ending === undefined ? '' : `.${ending}`
}
