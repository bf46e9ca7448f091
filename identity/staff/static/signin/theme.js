// Applies what this browser has stored, before the page is drawn: light or dark, and whether the
// navigation is hidden.
(function () {
  const root = document.documentElement
  function stored(name) {
    try { return JSON.parse(localStorage.getItem(name)) } catch { return null }
  }
  function theme() {
    const name = stored('adminTheme')
    return ['light', 'dark'].includes(name) ? name : 'auto'
  }
  function isDark() {
    return theme() === 'dark' || (theme() === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches)
  }
  function draw() {
    root.classList.toggle('dark', isDark())
    document.querySelectorAll('[data-theme]').forEach(function (button) {
      button.setAttribute('aria-pressed', button.dataset.theme === theme())
    })
  }
  function choose(name) {
    localStorage.setItem('adminTheme', JSON.stringify(name))
    draw()
  }
  root.classList.toggle('navigation-hidden', stored('isNavigationHidden') === true)
  draw()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw)
  document.addEventListener('DOMContentLoaded', function () {
    draw()
    document.getElementById('theme-switch')?.addEventListener('click', function () {
      choose(isDark() ? 'light' : 'dark')
    })
    document.querySelectorAll('[data-theme]').forEach(function (button) {
      button.addEventListener('click', function () { choose(button.dataset.theme) })
    })
  })
})()
