import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Capability } from '../agents/contract.ts'
import type { BrowserCalls } from './calls.ts'

/** Security facts 1.2: nothing secret goes out, and what comes in is not to be trusted. */
const reading = { risk: 'read', needs: 'network' satisfies Capability, labels: ['ExternalNetwork'] } as const
const sending = { ...reading, risk: 'write', refuses: ['Secret', 'Pii'] } as const

const selector = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(2000),
  v.description('A CSS selector as browser_read_page shows it, or text=… for what an element says'),
)
/** What a click or a script does depends on the page, which an assessment of the arguments does not see. */
const sends = (intent: string) => () => ({ intent, harm: 'high', standing: 'once' }) as const

/** `calls` is loaded with the first call. */
export function browserTools(calls: () => Promise<BrowserCalls>, stepSecs: number): readonly AnyTool[] {
  // The first step waits for Chromium too.
  const timeoutSecs = stepSecs + 90
  return [navigateTool(calls, timeoutSecs), ...reads(calls, timeoutSecs), ...acts(calls, timeoutSecs)]
}

function navigateTool(calls: () => Promise<BrowserCalls>, timeoutSecs: number): AnyTool {
  return defineTool({
    ...reading,
    name: 'browser_navigate',
    timeoutSecs,
    refuses: sending.refuses,
    description:
      'Open a page in your browser, which stays open for the other browser tools. Only hosts that your manifest ' +
      'allows; private addresses are refused.',
    input: v.object({
      url: v.pipe(v.string(), v.maxLength(8192), v.url('Expected an address such as https://example.com')),
    }),
    assess({ url }) {
      const { origin, host } = new URL(url)
      return { intent: `open a page of ${host}`, standing: { key: `GET ${origin}`, covers: `any page of ${origin}` } }
    },
    run: async ({ url }, call) => (await calls()).navigate(url, call),
  })
}

function reads(calls: () => Promise<BrowserCalls>, timeoutSecs: number): readonly AnyTool[] {
  return [
    defineTool({
      ...reading,
      name: 'browser_read_page',
      timeoutSecs,
      description: 'The open page as text: title, address, what it says, fields and buttons with selectors, links.',
      input: v.object({}),
      run: async (_, call) => (await calls()).readPage(call),
    }),
    defineTool({
      ...reading,
      name: 'browser_scroll',
      timeoutSecs,
      description: 'Scroll the open page by a number of pixels.',
      input: v.object({
        direction: v.optional(v.picklist(['up', 'down', 'left', 'right']), 'down'),
        amount: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100_000)), 600),
      }),
      run: async ({ direction, amount }, call) => (await calls()).scroll(direction, amount, call),
    }),
    defineTool({
      ...reading,
      name: 'browser_wait',
      timeoutSecs,
      polls: true,
      description: 'Wait until an element of the open page is visible.',
      input: v.object({
        selector,
        timeout_ms: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(30_000)), 5000),
      }),
      run: async ({ selector: element, timeout_ms: ms }, call) => (await calls()).wait(element, ms, call),
    }),
    defineTool({
      ...reading,
      name: 'browser_back',
      timeoutSecs,
      description: 'Go back to the page before, or close a window that a page has opened.',
      input: v.object({}),
      run: async (_, call) => (await calls()).back(call),
    }),
    defineTool({
      name: 'browser_close',
      risk: 'read',
      needs: reading.needs,
      description: 'Close your browser. Its cookies and open pages are gone.',
      input: v.object({}),
      run: async (_, call) => (await calls()).close(call),
    }),
  ]
}

/** What sends data to a site, or writes a file. */
function acts(calls: () => Promise<BrowserCalls>, timeoutSecs: number): readonly AnyTool[] {
  return [
    defineTool({
      ...sending,
      name: 'browser_click',
      timeoutSecs,
      description: 'Click an element of the open page, and wait for the page that it leads to.',
      input: v.object({ selector }),
      assess: sends('click in a page'),
      run: async (input, call) => (await calls()).click(input.selector, call),
    }),
    defineTool({
      ...sending,
      name: 'browser_type',
      timeoutSecs,
      description: 'Fill a field of the open page, replacing what is in it; choose an option of a list by its label.',
      input: v.object({ selector, text: v.pipe(v.string(), v.maxLength(100_000)) }),
      assess: sends('write into a field of a page'),
      run: async ({ selector: element, text }, call) => (await calls()).type(element, text, call),
    }),
    defineTool({
      ...sending,
      name: 'browser_run_js',
      timeoutSecs,
      description: 'Evaluate a JavaScript expression in the open page. Answers its value as JSON.',
      input: v.object({ expression: v.pipe(v.string(), v.minLength(1), v.maxLength(100_000)) }),
      assess: sends('run a script in a page'),
      run: async ({ expression }, call) => (await calls()).runScript(expression, call),
    }),
    defineTool({
      ...reading,
      name: 'browser_screenshot',
      risk: 'write',
      timeoutSecs,
      description: 'Save a picture of the visible part of the open page to the workspace. image_analyze looks at it.',
      input: v.object({}),
      run: async (_, call) => (await calls()).screenshot(call),
    }),
  ]
}
