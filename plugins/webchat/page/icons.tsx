import type { ComponentChildren } from 'preact'

function Icon({ children }: { readonly children: ComponentChildren }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 20 20"
      width="20"
      height="20"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      {children}
    </svg>
  )
}
export const PlusIcon = () => (
  <Icon>
    <path d="M10 4v12M4 10h12" />
  </Icon>
)
export const SendIcon = () => (
  <Icon>
    <path d="M10 16V4.5M5 9l5-5 5 5" />
  </Icon>
)
export const StopIcon = () => (
  <Icon>
    <rect x="5.5" y="5.5" width="9" height="9" rx="1.5" fill="currentColor" stroke="none" />
  </Icon>
)
export const MenuIcon = () => (
  <Icon>
    <path d="M3.5 6h13M3.5 10h13M3.5 14h13" />
  </Icon>
)
export const TrashIcon = () => (
  <Icon>
    <path d="M4 6h12M8 6V4h4v2M5.5 6l.7 10h7.6l.7-10M8.5 9v4M11.5 9v4" />
  </Icon>
)
export const FreshIcon = () => (
  <Icon>
    <path
      d="M16 10.5V15a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 4 15V6a1.5 1.5 0 0 1 1.5-1.5H10M8
      12l.6-2.6L15 3l2 2-6.4 6.4z"
    />
  </Icon>
)
export const ToolIcon = () => (
  <Icon>
    <path
      d="M12.6 3.3a4 4 0 0 0-4.8 5.3l-4.6 4.6a1.6 1.6 0 0 0 0 2.3l1.3 1.3a1.6 1.6 0 0 0 2.3
      0l4.6-4.6a4 4 0 0 0 5.3-4.8l-2.4 2.4-2.4-.6-.6-2.4z"
    />
  </Icon>
)
export const ChevronIcon = () => (
  <Icon>
    <path d="M7.5 5l5 5-5 5" />
  </Icon>
)
export const DownIcon = () => (
  <Icon>
    <path d="M10 4v11.5M5 11l5 5 5-5" />
  </Icon>
)
export const WarningIcon = () => (
  <Icon>
    <path d="M10 3.5 17.5 16h-15zM10 8.5v3.2M10 13.9v.1" />
  </Icon>
)
export const CloseIcon = () => (
  <Icon>
    <path d="M5 5l10 10M15 5 5 15" />
  </Icon>
)
export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false">
    <rect class="mark-tile" width="32" height="32" rx="9" />
    <path
      class="mark-face"
      d="M9 12.2A4.2 4.2 0 0 1 13.2 8h5.6a4.2 4.2 0 0 1 4.2 4.2v3.9a4.2 4.2 0 0 1-4.2 4.2h-3.3L11
        24v-4.3a4.2 4.2 0 0 1-2-3.6z"
    />
    <circle class="mark-tile" cx="13.4" cy="14.2" r="1.4" />
    <circle class="mark-tile" cx="18.6" cy="14.2" r="1.4" />
  </svg>
)
export const PencilIcon = () => (
  <Icon>
    <path d="M4 16l.8-3.4L13.2 4.2a1.4 1.4 0 0 1 2 0l.6.6a1.4 1.4 0 0 1 0 2L7.4 15.2 4 16zM11.8 5.6l2.6 2.6" />
  </Icon>
)
export const SlidersIcon = () => (
  <Icon>
    <path d="M3.5 6h7M15 6h1.5M3.5 14H5M9.5 14h7M12.7 4v4M7.3 12v4" />
  </Icon>
)
export const MoreIcon = () => (
  <Icon>
    <path d="M4.5 10h.01M10 10h.01M15.5 10h.01" stroke-width="2.4" />
  </Icon>
)
export const PinIcon = () => (
  <Icon>
    <path d="M7.5 3.5h5l-.6 5.2 2.6 2.8h-9l2.6-2.8zM10 11.5v5" />
  </Icon>
)
export const ClipIcon = () => (
  <Icon>
    <path d="M15.5 9.5l-5.8 5.8a3.4 3.4 0 0 1-4.8-4.8l6.3-6.3a2.3 2.3 0 0 1 3.2 3.2l-6.2 6.2a1.1 1.1 0 0 1-1.6-1.6l5.5-5.5" />
    <path d="M10 4.5v.1M10 10v.1M10 15.5v.1" stroke-width="2.6" />
  </Icon>
)
export const CheckIcon = () => (
  <Icon>
    <path d="M4.5 10.5l3.5 3.5 7.5-8" />
  </Icon>
)
