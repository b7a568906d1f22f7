/** Whether this page is shown in a frame, without an origin: it has no key, and the page around it makes its requests. */
export const isFramed = self.origin === 'null'

let calls = 0
const waiting = new Map()
if (isFramed) addEventListener('message', settle)

/** What the daemon answers to a request; throws an error of the class `Problem` with what it refused. */
export function callParent(request, Problem) {
  const id = ++calls
  const { promise, resolve, reject } = Promise.withResolvers()
  waiting.set(id, {
    resolve,
    reject: ({ status, message, issues }) => reject(new Problem(status, message, { issues })),
  })
  parent.postMessage({ ...request, id }, location.origin)
  return promise
}

function settle({ source, data }) {
  if (source !== parent) return
  const call = waiting.get(data.id)
  waiting.delete(data.id)
  if (data.error) call?.reject(data.error)
  else call?.resolve(data.answer)
}
