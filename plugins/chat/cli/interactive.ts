import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { exits, loadTerminal } from 'svc/cli'
import type { Connection, Screen } from 'svc/cli'
import { completeLine } from './complete.ts'
import type { Conversation } from './conversation.ts'

interface TerminalDeps {
  readonly conversation: Conversation
  readonly connection: Connection
  readonly screen: Screen
  readonly colored: boolean
}

/** The letters that answer a question. */
const ANSWER = /^(?:y|yes|n|no|s|a|d)$/i

/**
 * Messages go one after the other; what is sent during an answer waits, but an answer to a question and /stop do not.
 */
export async function converseInTerminal({ conversation, connection, screen, colored }: TerminalDeps): Promise<number> {
  const { LineHistory, readLines } = await loadTerminal()
  const { home } = connection.location
  // A daemon of another machine is no reason to make a home here.
  const history = existsSync(home) ? new LineHistory(join(home, 'chat-history')) : undefined
  let work = Promise.resolve()
  // Not the end of the input: what was sent before that is still answered.
  let isLeft = false
  let isWarned = false
  let close = (): void => undefined
  const leave = (): void => {
    isLeft = true
    close()
  }
  const take = async (text: string): Promise<void> => {
    if (isLeft) return
    try {
      if ((await conversation.take(text)) === 'exit') leave()
    } catch (error) {
      if (!conversation.showFailure(error)) leave()
    }
  }
  const watch = conversation.watch()
  let watching: Promise<void> | undefined
  await readLines({
    screen,
    colored,
    history: history?.lines ?? [],
    remember(line) {
      if (!ANSWER.test(line.trim())) history?.add(line)
    },
    async complete(line) {
      try {
        return await completeLine(connection.client, line)
      } catch (error) {
        conversation.showFailure(error)
        return []
      }
    },
    onOpen(end) {
      close = end
      conversation.greet()
      watching = watch.run()
    },
    onLine(text, begunAt) {
      isWarned = false
      if (conversation.answersApproval(text, begunAt)) return
      if (text === '/stop' && conversation.cancel()) return
      work = work.then(() => take(text))
    },
    onInterrupt() {
      if (conversation.cancel()) return
      if (isWarned) leave()
      else conversation.say('Ctrl-C again leaves.')
      isWarned = true
    },
  })
  await work
  watch.stop()
  await watching
  return exits.ok
}
