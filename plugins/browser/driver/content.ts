import type { PageContent } from '../wire.ts'

/** What a page shows. Runs in the page, so it uses nothing from outside of it. */
export function readContent([maxChars, maxItems]: readonly [number, number]): PageContent {
  const cut = (value: unknown, length: number): string =>
    String(value ?? '')
      .replace(/\s+/g, ' ')
      .trim()
      .slice(0, length)
  const isOnly = (selector: string): boolean => document.querySelectorAll(selector).length === 1
  const selectorOf = (element: Element): string => {
    const parts: string[] = []
    for (let at: Element | null = element; at && parts.length < 12; at = at.parentElement) {
      const tag: string = at.localName
      const byId = `#${CSS.escape(at.id)}`
      const byName = `${tag}[name=${JSON.stringify(at.getAttribute('name') ?? '')}]`
      const only = [...(at.id === '' ? [] : [byId]), ...(at.hasAttribute('name') ? [byName] : [])].find(isOnly)
      if (only !== undefined) return [only, ...parts].join(' > ').slice(0, 500)
      const same = [...(at.parentElement?.children ?? [at])].filter((each) => each.localName === tag)
      parts.unshift(same.length > 1 ? `${tag}:nth-of-type(${same.indexOf(at) + 1})` : tag)
    }
    return parts.join(' > ').slice(0, 500)
  }
  const visible = <T extends Element>(selector: string): T[] => {
    const found: T[] = []
    for (const element of document.querySelectorAll<T>(selector)) {
      if (found.length >= maxItems) break
      if (element.checkVisibility()) found.push(element)
    }
    return found
  }
  const labelOf = (element: HTMLInputElement): string =>
    cut(
      element.labels?.[0]?.innerText || element.getAttribute('aria-label') || element.placeholder || element.name,
      100,
    )
  const main = document.querySelector<HTMLElement>('main, article, [role=main]')?.innerText ?? ''
  const whole = main.length >= 200 ? main : (document.body?.innerText ?? '')
  return {
    text: whole.slice(0, maxChars),
    links: visible<HTMLAnchorElement>('a[href]').map((link) => ({
      text: cut(link.innerText, 100),
      href: cut(link.href, 500),
    })),
    fields: visible<HTMLInputElement>('input:not([type=hidden], [type=submit], [type=button]), textarea, select').map(
      (field) => ({
        selector: selectorOf(field),
        label: labelOf(field),
        type: cut(field.type, 20),
        value:
          field.type === 'password'
            ? ''
            : cut(/^(?:checkbox|radio)$/.test(field.type) ? field.checked : field.value, 100),
      }),
    ),
    buttons: visible<HTMLElement>('button, input[type=submit], input[type=button], [role=button]').map((button) => ({
      selector: selectorOf(button),
      text: cut(button.innerText || button.getAttribute('value') || button.getAttribute('aria-label'), 100),
    })),
  }
}
