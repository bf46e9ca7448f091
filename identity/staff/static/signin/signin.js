// Shows a message when a passkey fails; the library only logs it to the console.
(function () {
  const problem = document.getElementById('passkey-problem')
  if (!problem) return
  document.addEventListener('allauth.error', function (event) {
    event.preventDefault()
    const isElsewhere = location.hostname !== problem.dataset.host
    problem.textContent = isElsewhere
      ? problem.dataset.elsewhere
      : window.PublicKeyCredential ? problem.dataset.failed : problem.dataset.missing
    problem.hidden = false
    problem.scrollIntoView({ block: 'nearest' })
  })
})()
