import type { InboundMessage } from 'svc/channels'

type Written = Pick<InboundMessage, 'text' | 'isForwarded'>
/** Whether a message is a command: a slash and a word of its sender, so that a path is not taken for one. */
export function isCommandText({ text, isForwarded }: Written): boolean {
  return isForwarded !== true && COMMAND.test(text)
}
const COMMAND = /^\/([a-zA-Z][a-zA-Z0-9-]*)(?:@\w+)?(?:\s+([\s\S]*))?$/

export interface CommandText {
  readonly name: string
  readonly argument: string
}
/** Also as platforms write it in groups: `/status@name_of_the_bot`. */
export function readCommand({ text, isForwarded }: Written): CommandText | undefined {
  if (isForwarded === true) return undefined
  const [, name, argument = ''] = COMMAND.exec(text.trim()) ?? []
  return name === undefined ? undefined : { name: name.toLowerCase(), argument: argument.trim() }
}
