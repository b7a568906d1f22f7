import { exits, loadTerminal } from 'svc/cli'
import type { Screen } from 'svc/cli'
import type { Conversation } from './conversation.ts'

/**
 * Messages go one after the other; what is sent during an answer waits, but an answer to a question and /stop do not.
 */
export async function converseInTerminal(
  conversation: Conversation,
  screen: Screen,
  colored: boolean,
): Promise<number> {
  const { readLines } = await loadTerminal()
  let work = Promise.resolve()
  // Not the end of the input: what was sent before that is still answered.
  let isLeft = false
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
  await readLines({
    screen,
    colored,
    onOpen(end) {
      close = end
      conversation.greet()
    },
    onLine(text, begunAt) {
      if (conversation.answersApproval(text, begunAt)) return
      if (text === '/stop' && conversation.cancel()) return
      work = work.then(() => take(text))
    },
    onInterrupt() {
      if (!conversation.cancel()) leave()
    },
  })
  await work
  return exits.ok
}
