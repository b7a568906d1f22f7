import { follow } from './api.js'

const MIN_PAUSE_MS = 400
const RETRY_MS = 3000

/**
 * Calls `refresh` when a line with one of these words is written to the log, with each event of `feeds`, which are paths
 * of streams, and every `everyMs` for what neither tells. Nothing is asked while the page is hidden. `indicator` is an
 * element that says whether the page is live.
 */
export function followChanges({ words, feeds = [], everyMs, refresh, indicator }) {
  const paths = [...words.map((word) => `/api/logs/stream?tail=0&filter=${encodeURIComponent(word)}`), ...feeds]
  let ending
  const run = throttle(async () => {
    if (!document.hidden) await refresh()
  })
  const state = (name, text) => {
    indicator.dataset.state = name
    indicator.textContent = text
  }
  const start = () => {
    ending = new AbortController()
    const { signal } = ending
    const timer = setInterval(run, everyMs)
    signal.addEventListener('abort', () => clearInterval(timer))
    for (const path of paths) void listen(path, { signal, run, state })
  }
  document.addEventListener('visibilitychange', () => {
    ending.abort()
    if (document.hidden) return state('paused', 'Paused')
    run()
    start()
  })
  start()
}

async function listen(path, { signal, run, state }) {
  while (!signal.aborted) {
    try {
      await readFeed(path, { signal, run, onOpen: () => state('live', 'Live') })
    } catch (error) {
      if (!signal.aborted) state('lost', error.status === 0 ? 'No connection' : 'Updated every few seconds')
    }
    if (signal.aborted) return
    await pause(RETRY_MS)
    // What happened meanwhile was missed.
    run()
  }
}

async function readFeed(path, { signal, run, onOpen }) {
  for await (const event of follow(path, signal, onOpen)) if (event) run()
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** At once, then at most once in each pause; never two at the same time. */
function throttle(work) {
  let isRunning = false
  let isDue = false
  return async function run() {
    isDue = true
    if (isRunning) return
    isRunning = true
    while (isDue) {
      isDue = false
      await work()
      await pause(MIN_PAUSE_MS)
    }
    isRunning = false
  }
}
